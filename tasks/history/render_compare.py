"""A comparison on the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from coldrun.tasks.history.history_model import ArmComparison, ChangePart, Comparison, RunPart
from coldrun.tasks.history.history_parts import p_text, tasks_text, total_text
from coldrun.tasks.report.markdown import bullets, code, inert, table_lines
from coldrun.tasks.report.tables import print_table

HEADERS = ["arm", "measure", "before", "after", "Δ tasks", "95 %", "up", "down", "p"]
SHOWN_TASKS = 20


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the verdict, then the paired table, then which tasks moved."""
    for line in _head(comparison):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(comparison.verdict, style="bold"), soft_wrap=True)
    console.print()
    print_table(console, HEADERS, _rows(comparison))
    for line in _tail(comparison):
        style = "yellow" if line.startswith("warning") else ""
        console.print(Text(line, style=style), soft_wrap=True)


def comparison_markdown(comparison: Comparison) -> str:
    """The same as Markdown, with full hashes."""
    lines = [
        f"**{inert(comparison.verdict)}**",
        "",
        *bullets(_head(comparison)),
        f"- panel {code(comparison.panel_digest)}",
        "",
        *table_lines(HEADERS, _rows(comparison)),
        "",
        *bullets(_tail(comparison)),
    ]
    return "\n".join(lines)


def _head(comparison: Comparison) -> Iterator[str]:
    for word, run in (("before", comparison.before), ("after", comparison.after)):
        yield f"{word}: {run_words(run)}"


def run_words(run: RunPart) -> str:
    """A run in one line: what executed comes first."""
    point = "no product" if run.point is None else f"point {run.point.commit[:12]}"
    return (
        f"executed {run.counts['executed']} · replayed {run.counts['replayed']} · "
        f"tool failures {run.counts['infra']} · {run.name} {run.run_id} · {point} · {run.verdict}"
    )


def _rows(comparison: Comparison) -> Iterator[list[str]]:
    for arm in comparison.arms:
        for number, (measure, change) in enumerate(arm.measures.items()):
            yield [arm.arm if number == 0 else "", measure, *_cells(change)]


def _cells(change: ChangePart) -> list[str]:
    return [
        total_text(change.before),
        total_text(change.after),
        tasks_text(change.difference),
        f"[{change.low:+.1f}, {change.high:+.1f}]",
        str(change.up),
        str(change.down),
        p_text(change.p),
    ]


def _tail(comparison: Comparison) -> Iterator[str]:
    yield (
        f"scores are sums over tasks; paired by task; p one-sided in the direction of the change "
        f"(the gate is 0.025); {comparison.primary} decides"
    )
    for arm in comparison.arms:
        if arm.sentence not in comparison.verdict:
            yield arm.sentence
    for arm in comparison.arms:
        yield from _moved(arm)
    for control in comparison.controls:
        if control.verdict == "DRIFT":
            yield (
                f"warning: the control {control.arm} moved ({control.up} up, {control.down} down); "
                "the comparison is confounded"
            )
    if comparison.controls and all(item.verdict == "NO_DRIFT" for item in comparison.controls):
        yield f"controls did not move: {', '.join(item.arm for item in comparison.controls)}"
    yield from (f"warning: {warning}" for warning in comparison.warnings)


def _moved(arm: ArmComparison) -> Iterator[str]:
    for word, tasks in (("up", arm.up_tasks), ("down", arm.down_tasks)):
        if tasks:
            more = len(tasks) - SHOWN_TASKS
            text = ", ".join(tasks[:SHOWN_TASKS]) + (f" and {more} more" if more > 0 else "")
            yield f"{arm.arm} {word}: {text}"
    if arm.differs_in:
        yield f"{arm.arm}: answers' keys differ in {', '.join(arm.differs_in)}"
