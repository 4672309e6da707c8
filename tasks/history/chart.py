"""Charts of a score over points, with intervals, as SVG."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from coldrun.tasks.history.history_model import History
from coldrun.tasks.history.history_words import tasks_text
from coldrun.tasks.history.score_trend import Trend, TrendPoint, TrendStep
from coldrun.tasks.lib.plain_text import counted

WIDTH_PER_POINT = 46
MIN_WIDTH, MAX_WIDTH = 320, 1400
HEIGHT = 300
INK, FAINT = "#1f2328", "#8c959f"
UP, DOWN = "#1a7f37", "#cf222e"


def trend_chart(trend: Trend) -> str:
    """The trend as SVG."""
    return _render(
        trend,
        title=f"{trend.name}: {trend.measure}",
        subtitle=f"{counted(trend.n, 'task')}, 95 % intervals of {trend.arm}; only steps that a "
        "paired test supports are marked (tasks)",
    )


def history_chart(history: History) -> str:
    """The arms' primary measure over the measured points, as SVG; steps are marked by status."""
    primary = history.primary
    points = [
        TrendPoint(
            commit=point.commit,
            subject=point.subject,
            committed_at=point.committed_at,
            evidence={},
            run_ids={},
            arms={arm: scores[primary] for arm, scores in point.arms.items()}
            if point.status == "measured"
            else {},
        )
        for point in history.points
    ]
    steps = [
        TrendStep(
            arm=history.arm,
            from_=step.from_,
            to=step.to,
            status=step.status,
            up=step.measures[primary].up,
            down=step.measures[primary].down,
            difference=step.measures[primary].difference,
            p=step.measures[primary].p,
            reasons=step.reasons,
        )
        for step in history.steps
    ]
    return _render(
        Trend(
            name=history.name,
            panel_digest=history.panel.digest,
            measure=primary,
            arm=history.arm,
            n=history.counts.tasks,
            points=points,
            steps=steps,
            rules={},
            warnings=[],
        ),
        title=f"{history.name}: {primary} of {history.arm}",
        subtitle=f"{counted(history.counts.tasks, 'task')}, 95 % intervals; only steps that clear "
        "the noise floor are marked (tasks)",
        gaps=[at for at, point in enumerate(history.points) if point.status == "failed"],
    )


def _render(trend: Trend, *, title: str, subtitle: str, gaps: Sequence[int] = ()) -> str:
    """Draw the arms over the points, the steps of the first arm, and the rules.

    `gaps` are the places of points that could not be measured.
    """
    import altair as alt
    import vl_convert

    count = len(trend.points)
    width = min(MAX_WIDTH, max(MIN_WIDTH, WIDTH_PER_POINT * count))
    labels = [point.commit[:7] for point in trend.points]
    x = alt.X(
        "place:Q",
        title=None,
        scale=alt.Scale(domain=[-0.4, max(1, count) - 0.6], nice=False),
        axis=alt.Axis(
            # a label at every point, or at as many as fit
            values=list(range(0, count, max(1, -(-count * 16 // width)))),
            labelExpr=f"{json.dumps(labels)}[datum.value]",
            labelAngle=-50,
            labelFont="monospace",
            grid=False,
        ),
    )
    layers = [
        *_rule_layers(alt, trend.rules, width),
        *_gap_layers(alt, gaps, x),
        *_mark_layers(alt, trend, x),
        *_arm_layers(alt, trend, x),
    ]
    head = alt.TitleParams(title, subtitle=subtitle, anchor="start", color=INK, offset=16)
    chart = (
        alt.layer(*layers)
        .properties(width=width, height=HEIGHT, title=head)
        .configure_view(stroke=None)
        .configure_legend(symbolOpacity=1)
        .configure_axis(labelColor=INK, titleColor=INK, gridColor="#eaeef2")
    )
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def _arm_layers(alt: Any, trend: Trend, x: Any) -> list[Any]:
    """A line and points for every arm; intervals for the first alone, which would cover others."""
    rows = [
        {
            "place": place,
            "commit": point.commit[:12],
            "subject": point.subject,
            "arm": arm,
            **part.model_dump(include={"value", "low", "high"}),
        }
        for place, point in enumerate(trend.points)
        for arm, part in point.arms.items()
    ]
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    arms.sort(key=lambda arm: arm != trend.arm)
    highest = max([0.1, *(row["high"] for row in rows), *trend.rules.values()])
    top = min(1.0, math.ceil(highest * 10) / 10)  # all that is drawn, up to the next tenth
    y = alt.Y("value:Q", title=trend.measure, scale=alt.Scale(domain=[0, top]))
    color = alt.Color("arm:N", sort=arms, title="arm")
    is_first = alt.datum.arm == trend.arm
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, color=color)
    return [
        base.mark_line().encode(
            y=y,
            strokeWidth=alt.condition(is_first, alt.value(2.4), alt.value(1.2)),
            opacity=alt.condition(is_first, alt.value(1), alt.value(0.7)),
        ),
        base.mark_rule(strokeWidth=1.6, opacity=0.8)
        .transform_filter(is_first)
        .encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, opacity=1).encode(
            y=y, size=alt.condition(is_first, alt.value(60), alt.value(18))
        ),
    ]


def _gap_layers(alt: Any, gaps: Sequence[int], x: Any) -> list[Any]:
    """A cross on the axis where a point could not be measured."""
    if not gaps:
        return []
    chart = alt.Chart(alt.Data(values=[{"place": place} for place in gaps]))
    return [chart.mark_text(text="×", fontSize=14, color=FAINT, dy=-6).encode(x=x, y=alt.datum(0))]


def _rule_layers(alt: Any, rules: Mapping[str, float], width: int) -> list[Any]:
    if not rules:
        return []
    values = [{"name": name, "value": value} for name, value in rules.items()]
    chart = alt.Chart(alt.Data(values=values))
    return [
        chart.mark_rule(strokeDash=[5, 4], color=FAINT).encode(y="value:Q"),
        chart.mark_text(align="right", dx=-4, dy=-6, fontSize=10, color=FAINT).encode(
            y="value:Q", x=alt.value(width), text="name:N"
        ),
    ]


def _mark_layers(alt: Any, trend: Trend, x: Any) -> list[Any]:
    places = {point.commit: place for place, point in enumerate(trend.points)}
    values = [
        {
            "place": places[step.to],
            "text": tasks_text(step.difference),
            "color": UP if step.difference > 0 else DOWN,
        }
        for step in trend.steps
        if step.arm == trend.arm and step.status in ("changed", "bundle")
    ]
    if not values:
        return []
    color = alt.Color("color:N", scale=None)
    chart = alt.Chart(alt.Data(values=values)).encode(x=x, color=color)
    return [
        chart.mark_rule(opacity=0.35),
        chart.mark_text(fontSize=11, fontWeight="bold").encode(y=alt.value(-8), text="text:N"),
    ]
