"""A trend on the terminal, as Markdown and as a chart."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from coldrun.tasks.history.chart import DOWN, UP, ChartContent, render_chart, score_row
from coldrun.tasks.history.history_model import ScorePart
from coldrun.tasks.history.history_parts import p_text, tasks_text
from coldrun.tasks.history.score_trend import Trend, TrendPoint
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.report.markdown import bullets, code, inert, table_lines
from coldrun.tasks.report.run_words import short_digest
from coldrun.tasks.report.tables import print_table

SUBJECT = 48


def print_trend(trend: Trend, console: Console) -> None:
    """Print the points, the steps that a test supports, and the lines to hold against them."""
    console.print(Text(_title(trend), style="bold"), soft_wrap=True)
    print_table(
        console,
        _headers(trend),
        [_cells(trend, point) for point in trend.points],
        text_columns=4,
        prose=[_headers(trend).index("subject")],
    )
    for line in _tail(trend):
        console.print(Text(line), soft_wrap=True)


def trend_markdown(trend: Trend) -> str:
    """The same as Markdown, with the full hash of the panel."""
    lines = [f"# {inert(_title(trend))}", "", f"- panel {code(trend.panel_digest)}", ""]
    lines += table_lines(
        _headers(trend), (_cells(trend, point) for point in trend.points), text_columns=4
    )
    lines += ["", *bullets(_tail(trend))]
    return "\n".join(lines)


def trend_chart(trend: Trend) -> str:
    """The trend as SVG."""
    places = {point.commit: number for number, point in enumerate(trend.points)}
    return render_chart(
        ChartContent(
            rows=[
                score_row(number, point.commit, point.subject, arm, part)
                for number, point in enumerate(trend.points)
                for arm, part in point.arms.items()
            ],
            labels=[point.commit[:7] for point in trend.points],
            title=f"{trend.name}: {trend.measure}",
            subtitle=f"{counted(trend.n, 'task')}, 95 % intervals of {trend.arm}; only steps "
            "that a paired test supports are marked (tasks)",
            measure=trend.measure,
            first=trend.arm,
            marks=[
                {
                    "place": places[step.to],
                    "text": tasks_text(step.difference),
                    "color": UP if step.difference > 0 else DOWN,
                }
                for step in trend.steps
                if step.arm == trend.arm and step.status in ("changed", "bundle")
            ],
            rules=trend.rules,
        )
    )


def _title(trend: Trend) -> str:
    return (
        f"{trend.name} at {trend.measure}, {counted(trend.n, 'task')}, panel "
        f"{short_digest(trend.panel_digest)}: {counted(len(trend.points), 'point')}"
    )


def _arms(trend: Trend) -> list[str]:
    names = dict.fromkeys(arm for point in trend.points for arm in point.arms)
    return [trend.arm, *(arm for arm in names if arm != trend.arm)]


def _headers(trend: Trend) -> list[str]:
    return ["commit", "subject", "date", "evidence", *_arms(trend), "step"]


def _cells(trend: Trend, point: TrendPoint) -> list[str]:
    steps = [
        f"{tasks_text(step.difference)} ({step.up}/{step.down}, p = {p_text(step.p)})"
        + ("" if step.status == "changed" else f" {step.status}")
        for step in trend.steps
        if step.arm == trend.arm and step.to == point.commit
    ]
    return [
        point.commit[:12],
        point.subject if len(point.subject) <= SUBJECT else f"{point.subject[: SUBJECT - 1]}…",
        point.committed_at[:10],
        point.evidence.get(trend.arm, "missing"),
        *(_score(point.arms.get(arm), is_first=arm == trend.arm) for arm in _arms(trend)),
        *(steps or [""]),
    ]


def _score(part: ScorePart | None, *, is_first: bool) -> str:
    if part is None:
        return ""
    count = f"{part.value:.3f}" if part.count is None else str(part.count)
    return f"{count} [{part.low:.2f}, {part.high:.2f}]" if is_first else count


def _tail(trend: Trend) -> Iterator[str]:
    for name, value in trend.rules.items():
        yield f"{name} ({value * trend.n:.1f} tasks)"
    for step in trend.steps:
        for reason in step.reasons:
            yield f"{step.arm} {step.from_[:7]}..{step.to[:7]} {step.status}: {reason}"
    yield from (f"warning: {warning}" for warning in trend.warnings)
