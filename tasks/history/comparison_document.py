"""The documents of a comparison and of a trend, and the chart of a trend."""

from __future__ import annotations

from collections.abc import Iterator

from coldrun.tasks.history.history_document import SUBJECT, control_lines, moved_lines
from coldrun.tasks.history.history_model import Comparison, RunPart, ScorePart
from coldrun.tasks.history.history_words import interval_text, tasks_text, total_text
from coldrun.tasks.history.score_trend import Trend, TrendPoint
from coldrun.tasks.lib.plain_text import counted, cut_text, short_digest
from coldrun.tasks.report.document import (
    Block,
    Code,
    Heading,
    Line,
    Paragraph,
    Table,
    lines,
    warning_lines,
)
from coldrun.tasks.report.run_words import p_words

COMPARISON_HEADERS = ["arm", "measure", "before", "after", "Δ tasks", "95 %", "up", "down", "p"]
SHOWN_TASKS = 20


def comparison_document(comparison: Comparison) -> Iterator[Block]:
    """What executed, the verdict, the paired table, and which tasks moved."""
    yield from lines(
        f"{word}: {_run_words(run)}"
        for word, run in (("before", comparison.before), ("after", comparison.after))
    )
    yield Line(("panel ", Code(comparison.panel_digest)))
    yield Paragraph(comparison.verdict, is_strong=True)
    yield Table(headers=COMPARISON_HEADERS, rows=list(_change_rows(comparison)))
    yield Line(
        "scores are sums over tasks; paired by task; p one-sided in the direction of the change "
        f"(the gate is 0.025); {comparison.primary} decides"
    )
    yield from lines(
        arm.sentence for arm in comparison.arms if arm.sentence not in comparison.verdict
    )
    for arm in comparison.arms:
        yield from moved_lines(f"{arm.arm} ", arm.up_tasks, arm.down_tasks, SHOWN_TASKS)
        if arm.differs_in:
            yield Line(f"{arm.arm}: answers' keys differ in {', '.join(arm.differs_in)}")
    yield from control_lines(comparison.controls)
    moved = (control for control in comparison.controls if control.verdict == "DRIFT")
    yield from warning_lines(
        f"the control {control.arm} moved ({control.up} up, {control.down} down); "
        "the comparison is confounded"
        for control in moved
    )
    yield from warning_lines(comparison.warnings)


def _run_words(run: RunPart) -> str:
    """A run in one line: what executed comes first."""
    point = "no product" if run.point is None else f"point {run.point.commit[:12]}"
    return (
        f"executed {run.counts['executed']} · replayed {run.counts['replayed']} · "
        f"tool failures {run.counts['infra']} · {run.name} {run.run_id} · {point} · {run.verdict}"
    )


def _change_rows(comparison: Comparison) -> Iterator[list[str]]:
    for arm in comparison.arms:
        for number, (measure, change) in enumerate(arm.measures.items()):
            yield [
                arm.arm if number == 0 else "",
                measure,
                total_text(change.before),
                total_text(change.after),
                tasks_text(change.difference),
                interval_text(change.low, change.high),
                str(change.up),
                str(change.down),
                p_words(change.p),
            ]


def trend_document(trend: Trend) -> Iterator[Block]:
    """The points, the steps that a test supports, and the lines to hold against them."""
    yield Heading(
        f"{trend.name} at {trend.measure}, {counted(trend.n, 'task')}, panel "
        f"{short_digest(trend.panel_digest)}: {counted(len(trend.points), 'point')}"
    )
    yield Line(("panel ", Code(trend.panel_digest)))
    names = dict.fromkeys(arm for point in trend.points for arm in point.arms)
    arms = [trend.arm, *(arm for arm in names if arm != trend.arm)]
    yield Table(
        headers=["commit", "subject", "date", "evidence", *arms, "step"],
        rows=[_point_cells(trend, point, arms) for point in trend.points],
        text_columns=4,
        prose=[1],
    )
    yield from lines(f"{name} ({value * trend.n:.1f} tasks)" for name, value in trend.rules.items())
    yield from lines(
        f"{step.arm} {step.from_[:7]}..{step.to[:7]} {step.status}: {reason}"
        for step in trend.steps
        for reason in step.reasons
    )
    yield from warning_lines(trend.warnings)


def _point_cells(trend: Trend, point: TrendPoint, arms: list[str]) -> list[str]:
    steps = [
        f"{tasks_text(step.difference)} ({step.up}/{step.down}, p = {p_words(step.p)})"
        + ("" if step.status == "changed" else f" {step.status}")
        for step in trend.steps
        if step.arm == trend.arm and step.to == point.commit
    ]
    return [
        point.commit[:12],
        cut_text(point.subject, SUBJECT),
        point.committed_at[:10],
        point.evidence.get(trend.arm, "missing"),
        *(_score(point.arms.get(arm), is_first=arm == trend.arm) for arm in arms),
        *(steps or [""]),
    ]


def _score(part: ScorePart | None, *, is_first: bool) -> str:
    if part is None:
        return ""
    count = f"{part.value:.3f}" if part.count is None else str(part.count)
    return f"{count} [{part.low:.2f}, {part.high:.2f}]" if is_first else count
