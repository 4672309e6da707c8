"""A backfill or a decomposition on the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from coldrun.tasks.history.history_model import History, HistoryPoint, HistoryStep, StepChange
from coldrun.tasks.history.history_parts import floor_words, p_text, tasks_text, tasks_words
from coldrun.tasks.lib.plain_text import counted, cut_text
from coldrun.tasks.report.markdown import bullets, inert, table_lines
from coldrun.tasks.report.run_words import panel_words
from coldrun.tasks.report.tables import print_table

SHOWN_TASKS = 12
SUBJECT = 48

_STYLES = {
    "changed": "bold",
    "bundle": "bold yellow",
    "unverified": "red",
    "confounded": "red",
    "unchanged": "dim",
}


def print_history(history: History, console: Console) -> None:
    """Print first what executed, then the points, then the steps, then what is doubtful."""
    for number, line in enumerate(_head(history, is_short=True)):
        _print(console, line, "bold" if number == 0 else "")
    console.print()
    print_table(
        console,
        _point_headers(history),
        [_point_cells(history, point) for point in history.points],
        text_columns=3,
        prose=[1],
        styles=["" if point.status == "measured" else "dim" for point in history.points],
    )
    if history.steps:
        console.print()
        print_table(
            console,
            _step_headers(history),
            [_step_cells(history, step) for step in history.steps],
            text_columns=3,
            prose=[1],
            styles=[_STYLES.get(step.status, "") for step in history.steps],
        )
    for line in _tail(history):
        _print(console, line, "yellow" if line.startswith("warning") else "")


def history_markdown(history: History, *, chart: str | None = None) -> str:
    """The same as Markdown, with full hashes.

    Args:
        history: The history.
        chart: The name of the chart's file, to be shown in the text.
    """
    first, *others = _head(history, is_short=False)
    lines = [f"**{inert(first)}**", "", f"# {inert(_title(history))}", "", *bullets(others)]
    if chart is not None:
        lines += ["", f"![{inert(history.primary)} over the points](<{chart}>)"]
    lines += ["", "## Points", ""]
    lines += table_lines(
        _point_headers(history),
        (_point_cells(history, point) for point in history.points),
        text_columns=3,
    )
    if history.steps:
        lines += ["", "## Steps", ""]
        lines += table_lines(
            _step_headers(history),
            (_step_cells(history, step) for step in history.steps),
            text_columns=3,
        )
    lines += ["", *bullets(_tail(history))]
    return "\n".join(lines)


def _title(history: History) -> str:
    commits = counted(len(history.points), "commit")
    return f"{history.name}: {history.kind} of {history.arm} over {commits}"


def _head(history: History, *, is_short: bool) -> Iterator[str]:
    counts = history.counts
    resumed = f" ({counts.resumed} of them before it was resumed)" if counts.resumed else ""
    panel = f"panel {history.name} {history.panel.digest}"
    if is_short:
        panel = panel_words(history.name, history.panel.digest)
    yield (
        f"executed {counts.executed}{resumed} · replayed {counts.replayed} · "
        f"tool failures {counts.infra} · {panel} · "
        f"{counted(counts.points, 'point')} in {counted(counts.runs, 'run')}"
    )
    interrupted = " (interrupted)" if history.status == "interrupted" else ""
    yield (
        f"{history.kind} {history.run_id} · verdict {history.verdict}{interrupted} · evidence "
        f"{history.evidence} · {counted(counts.tasks, 'task')} · {history.wall_seconds:.1f} s"
    )
    yield f"{history.arm} at {history.primary}; {floor_words(history.noise.get(history.arm))}"
    total = history.sum
    if total is not None:
        adds_up = "add up" if total.adds_up else "DO NOT ADD UP"
        churn = f", {counted(total.churn, 'task')} moved there and back" if total.churn else ""
        yield (
            f"from end to end {tasks_words(total.ends_difference)}; the steps {adds_up} "
            f"({tasks_text(total.steps_difference)}{churn})"
        )


def _point_headers(history: History) -> list[str]:
    others = [arm for arm in history.roles if arm != history.arm]
    measures = next((list(point.measures) for point in history.points if point.measures), [])
    return ["commit", "subject", "status", history.primary, *measures[1:], *others, "s"]


def _point_cells(history: History, point: HistoryPoint) -> list[str]:
    measures = next((list(item.measures) for item in history.points if item.measures), [])
    others = [arm for arm in history.roles if arm != history.arm]
    cells = [point.commit[:12], cut_text(point.subject, SUBJECT), _status(point)]
    if point.status != "measured":
        return cells + ["·"] * (len(measures) + len(others)) + [_seconds(point)]
    primary = point.measures[history.primary]
    count = "" if primary.count is None else f"{primary.count} of {primary.n} "
    cells.append(f"{count}{primary.value:.3f} [{primary.low:.2f}, {primary.high:.2f}]")
    for measure in measures[1:]:
        part = point.measures.get(measure)
        cells.append("" if part is None else f"{part.value:.3f}")
    for arm in others:
        part = point.arms.get(arm, {}).get(history.primary)
        cells.append("" if part is None else _count(part.count, part.value))
    return [*cells, _seconds(point)]


def _count(count: int | None, value: float) -> str:
    return f"{value:.3f}" if count is None else str(count)


def _status(point: HistoryPoint) -> str:
    words = {
        "same_tree": f"as {(point.same_as or '')[:7]}",
        "failed": "failed",
        "skipped": "skipped",
        "measured": point.evidence or "measured",
    }[point.status]
    doubts = [
        text
        for text, holds in (
            ("measured nothing", point.measured_nothing),
            ("degraded", bool(point.degraded)),
        )
        if holds
    ]
    return ", ".join([words, *doubts])


def _seconds(point: HistoryPoint) -> str:
    return "" if point.wall_seconds is None else f"{point.wall_seconds:.1f}"


def _step_headers(history: History) -> list[str]:
    measures = list(history.steps[0].measures)
    return ["step", "subject", "status", f"{measures[0]} +/−", "95 %", "p", *_rest(measures), "s"]


def _rest(measures: list[str]) -> list[str]:
    return [f"{measure} +/−" for measure in measures[1:]]


def _step_cells(history: History, step: HistoryStep) -> list[str]:
    primary = step.measures[history.primary]
    return [
        f"{step.from_[:7]}..{step.to[:7]}",
        cut_text(step.subject, SUBJECT),
        step.status,
        _moves(primary),
        f"[{primary.low:+.1f}, {primary.high:+.1f}]",
        p_text(primary.p),
        *(_moves(change) for name, change in step.measures.items() if name != history.primary),
        "" if step.wall_seconds is None else f"{step.wall_seconds:.1f}",
    ]


def _moves(change: StepChange) -> str:
    if not change.up and not change.down:
        return "0"
    return f"{tasks_text(change.difference)} ({change.up}/{change.down})"


def _tail(history: History) -> Iterator[str]:
    if history.steps:
        yield (
            "steps in tasks, net (up/down); p one-sided in the direction of the change; a step is "
            "`changed` where it clears the noise floor: net beyond its band at p ≤ 0.025, or more "
            "tasks moved than repeats of one commit explain"
        )
    for step in history.steps:
        if step.status in ("changed", "bundle", "below_noise", "unverified", "confounded"):
            yield from _step_lines(step)
    moved = {
        control.arm
        for step in history.steps
        for control in step.controls
        if control.verdict == "DRIFT"
    } | {control.arm for control in history.closing_controls if control.verdict == "DRIFT"}
    asked = dict.fromkeys(
        control.arm
        for controls in [*(step.controls for step in history.steps), history.closing_controls]
        for control in controls
    )
    if asked and not moved:
        yield f"controls did not move: {', '.join(asked)}"
    yield from (f"warning: {warning}" for warning in history.warnings)


def _step_lines(step: HistoryStep) -> Iterator[str]:
    name = f"{step.from_[:7]}..{step.to[:7]} {step.status}"
    for reason in step.reasons:
        yield f"{name}: {reason}"
    for word, tasks in (("up", step.up_tasks), ("down", step.down_tasks)):
        if tasks:
            more = len(tasks) - SHOWN_TASKS
            text = ", ".join(tasks[:SHOWN_TASKS]) + (f" and {more} more" if more > 0 else "")
            yield f"{name}, {word}: {text}"


def _print(console: Console, line: str, style: str = "") -> None:
    console.print(Text(line, style=style), soft_wrap=True)
