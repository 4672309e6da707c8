"""Charts of a score over points, with intervals, as SVG."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coldrun.tasks.history.history_model import History, HistoryPoint, ScorePart
from coldrun.tasks.history.history_words import tasks_text
from coldrun.tasks.history.score_trend import Trend, TrendPoint
from coldrun.tasks.lib.plain_text import counted

WIDTH_PER_POINT = 46
MIN_WIDTH, MAX_WIDTH = 320, 1400
HEIGHT = 300
INK, FAINT = "#1f2328", "#8c959f"
UP, DOWN = "#1a7f37", "#cf222e"
MARKED = ("changed", "bundle")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    """What is drawn: `marks` are differences in tasks by commit, `gaps` places without a score."""

    measure: str
    arm: str
    points: Sequence[TrendPoint | HistoryPoint]
    scores: Sequence[Mapping[str, ScorePart]]
    marks: Mapping[str, float]
    rules: Mapping[str, float] = field(default_factory=dict)
    gaps: Sequence[int] = ()


def trend_chart(trend: Trend) -> str:
    """The trend as SVG."""
    return _render(
        _Drawing(
            measure=trend.measure,
            arm=trend.arm,
            points=trend.points,
            scores=[point.arms for point in trend.points],
            marks={
                step.to: step.difference
                for step in trend.steps
                if step.arm == trend.arm and step.status in MARKED
            },
            rules=trend.rules,
        ),
        title=f"{trend.name}: {trend.measure}",
        subtitle=f"{counted(trend.n, 'task')}, 95 % intervals of {trend.arm}; only steps that a "
        "paired test supports are marked (tasks)",
    )


def history_chart(history: History) -> str:
    """The arms' primary measure over the measured points, as SVG; steps are marked by status."""
    primary = history.primary
    return _render(
        _Drawing(
            measure=primary,
            arm=history.arm,
            points=history.points,
            scores=[
                {arm: scores[primary] for arm, scores in point.arms.items()}
                if point.status == "measured"
                else {}
                for point in history.points
            ],
            marks={
                step.to: step.measures[primary].difference
                for step in history.steps
                if step.status in MARKED
            },
            gaps=[at for at, point in enumerate(history.points) if point.status == "failed"],
        ),
        title=f"{history.name}: {primary} of {history.arm}",
        subtitle=f"{counted(history.counts.tasks, 'task')}, 95 % intervals; only steps that clear "
        "the noise floor are marked (tasks)",
    )


def _render(drawing: _Drawing, *, title: str, subtitle: str) -> str:
    import altair as alt
    import vl_convert

    count = len(drawing.points)
    width = min(MAX_WIDTH, max(MIN_WIDTH, WIDTH_PER_POINT * count))
    labels = [point.commit[:7] for point in drawing.points]
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
        *_rule_layers(alt, drawing.rules, width),
        *_gap_layers(alt, drawing.gaps, x),
        *_mark_layers(alt, drawing, x),
        *_arm_layers(alt, drawing, x),
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


def _arm_layers(alt: Any, drawing: _Drawing, x: Any) -> list[Any]:
    """A line and points for every arm; intervals for the first alone, which would cover others."""
    rows = [
        {
            "place": place,
            "commit": point.commit[:12],
            "subject": point.subject,
            "arm": arm,
            **part.model_dump(include={"value", "low", "high"}),
        }
        for place, (point, scores) in enumerate(zip(drawing.points, drawing.scores, strict=True))
        for arm, part in scores.items()
    ]
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    arms.sort(key=lambda arm: arm != drawing.arm)
    highest = max([0.1, *(row["high"] for row in rows), *drawing.rules.values()])
    top = min(1.0, math.ceil(highest * 10) / 10)  # all that is drawn, up to the next tenth
    y = alt.Y("value:Q", title=drawing.measure, scale=alt.Scale(domain=[0, top]))
    color = alt.Color("arm:N", sort=arms, title="arm")
    is_first = alt.datum.arm == drawing.arm
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


def _mark_layers(alt: Any, drawing: _Drawing, x: Any) -> list[Any]:
    places = {point.commit: place for place, point in enumerate(drawing.points)}
    values = [
        {
            "place": places[commit],
            "text": tasks_text(difference),
            "color": UP if difference > 0 else DOWN,
        }
        for commit, difference in drawing.marks.items()
    ]
    if not values:
        return []
    color = alt.Color("color:N", scale=None)
    chart = alt.Chart(alt.Data(values=values)).encode(x=x, color=color)
    return [
        chart.mark_rule(opacity=0.35),
        chart.mark_text(fontSize=11, fontWeight="bold").encode(y=alt.value(-8), text="text:N"),
    ]
