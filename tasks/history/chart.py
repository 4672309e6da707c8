"""Charts of a score over points, with intervals, as SVG."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coldrun.tasks.history.history_model import History, ScorePart
from coldrun.tasks.lib.plain_text import counted

WIDTH_PER_POINT = 46
MIN_WIDTH = 320
MAX_WIDTH = 1400
HEIGHT = 300
INK = "#1f2328"
FAINT = "#8c959f"
UP = "#1a7f37"
DOWN = "#cf222e"


def history_chart(history: History) -> str:
    """The arms' primary measure over the measured points, as SVG; steps are marked by status."""
    places = {point.commit: number for number, point in enumerate(history.points)}
    rows = [
        score_row(number, point.commit, point.subject, arm, scores[history.primary])
        for number, point in enumerate(history.points)
        if point.status == "measured"
        for arm, scores in point.arms.items()
    ]
    marks = [
        {
            "place": places[step.to],
            "text": f"{step.measures[history.primary].difference:+.4g}",
            "color": UP if step.measures[history.primary].difference > 0 else DOWN,
        }
        for step in history.steps
        if step.status in ("changed", "bundle")
    ]
    content = ChartContent(
        rows=rows,
        labels=[point.commit[:7] for point in history.points],
        title=f"{history.name}: {history.primary} of {history.arm}",
        subtitle=f"{counted(history.counts.tasks, 'task')}, 95 % intervals; only steps that "
        "clear the noise floor are marked (tasks)",
        measure=history.primary,
        marks=marks,
        first=history.arm,
        gaps=[number for number, point in enumerate(history.points) if point.status == "failed"],
    )
    return render_chart(content)


def score_row(place: int, commit: str, subject: str, arm: str, part: ScorePart) -> dict[str, Any]:
    """One arm at one point, as the chart takes it."""
    return {
        "place": place,
        "commit": commit[:12],
        "subject": subject,
        "arm": arm,
        "value": part.value,
        "low": part.low,
        "high": part.high,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartContent:
    """What a chart shows.

    Attributes:
        rows: Of `score_row`.
        labels: What the points are called on the axis, by place.
        title: The title.
        subtitle: The line below it.
        measure: The measure, for the axis.
        first: The arm that is looked at: drawn strong, the others faint.
        marks: Steps to mark, each with `place` (of its end), `text` and `color`.
        rules: Horizontal lines by name: bars, the null line.
        gaps: Places of points that could not be measured.
    """

    rows: Sequence[Mapping[str, Any]]
    labels: Sequence[str]
    title: str
    subtitle: str
    measure: str
    first: str
    marks: Sequence[Mapping[str, Any]] = ()
    rules: Mapping[str, float] = field(default_factory=dict)
    gaps: Sequence[int] = ()


def render_chart(content: ChartContent) -> str:
    """Draw lines with intervals over points, as SVG."""
    import altair as alt
    import vl_convert

    width = min(MAX_WIDTH, max(MIN_WIDTH, WIDTH_PER_POINT * len(content.labels)))
    x = alt.X(
        "place:Q",
        title=None,
        scale=alt.Scale(domain=[-0.4, max(1, len(content.labels)) - 0.6], nice=False),
        axis=alt.Axis(
            values=_ticks(len(content.labels), width),
            labelExpr=f"{json.dumps(list(content.labels))}[datum.value]",
            labelAngle=-50,
            labelFont="monospace",
            grid=False,
        ),
    )
    layers = [
        *_rule_layers(alt, content.rules, width),
        *_gap_layers(alt, content.gaps, x),
        *_mark_layers(alt, content.marks, x),
        *_arm_layers(alt, content, x),
    ]
    chart = (
        alt.layer(*layers)
        .properties(
            width=width,
            height=HEIGHT,
            title=alt.TitleParams(
                content.title, subtitle=content.subtitle, anchor="start", color=INK, offset=16
            ),
        )
        .configure_view(stroke=None)
        .configure_legend(symbolOpacity=1)
        .configure_axis(labelColor=INK, titleColor=INK, gridColor="#eaeef2")
    )
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def _arm_layers(alt: Any, content: ChartContent, x: Any) -> list[Any]:
    """A line and points for every arm; intervals for the first alone, which would cover others."""
    arms = list(dict.fromkeys(str(row["arm"]) for row in content.rows))
    arms.sort(key=lambda arm: arm != content.first)
    y = alt.Y("value:Q", title=content.measure, scale=alt.Scale(domain=[0, _top(content)]))
    color = alt.Color("arm:N", sort=arms, title="arm")
    is_first = alt.datum.arm == content.first
    base = alt.Chart(alt.Data(values=[dict(row) for row in content.rows])).encode(x=x, color=color)
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


def _top(content: ChartContent) -> float:
    """The upper end of the axis: all that is drawn, up to the next tenth."""
    highest = max([0.1, *(row["high"] for row in content.rows), *content.rules.values()])
    return float(min(1.0, math.ceil(highest * 10) / 10))


def _ticks(count: int, width: int) -> list[int]:
    """Places that get a label: all, or as many as fit."""
    step = max(1, -(-count * 16 // width))
    return list(range(0, count, step))


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


def _mark_layers(alt: Any, marks: Sequence[Mapping[str, Any]], x: Any) -> list[Any]:
    if not marks:
        return []
    color = alt.Color("color:N", scale=None)
    chart = alt.Chart(alt.Data(values=[dict(mark) for mark in marks])).encode(x=x, color=color)
    return [
        chart.mark_rule(opacity=0.35),
        chart.mark_text(fontSize=11, fontWeight="bold").encode(y=alt.value(-8), text="text:N"),
    ]
