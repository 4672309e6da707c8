"""The documents of a backfill or decomposition, and of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from coldrun.tasks.history.history_model import History, HistoryPoint, HistoryStep
from coldrun.tasks.history.history_plan import Node, order_nodes
from coldrun.tasks.history.history_words import floor_words, interval_text, tasks_text, tasks_words
from coldrun.tasks.lib.plain_text import counted, cut_text, noun
from coldrun.tasks.report.document import (
    Block,
    Code,
    Heading,
    Image,
    Line,
    Paragraph,
    RowStyle,
    Table,
    lines,
    listed,
    warning_lines,
)
from coldrun.tasks.report.run_words import p_words, panel_words
from coldrun.tasks.stats.decomposition import Change
from coldrun.tasks.stats.noise import Drift

if TYPE_CHECKING:
    from coldrun.tasks.history.history_lifecycle import Estimate

SHOWN_TASKS = 12
SUBJECT = 48

_STEP_STYLES: dict[str, RowStyle] = {
    "changed": "bold",
    "bundle": "doubtful",
    "unverified": "bad",
    "confounded": "bad",
    "unchanged": "dim",
}


def history_document(history: History, *, chart: str | None = None) -> Iterator[Block]:
    """First what executed, then the points, then the steps, then what is doubtful."""
    yield from _head(history)
    if chart is not None:
        yield Image(f"{history.primary} over the points", chart)
    yield Heading("Points", level=2, is_page_only=True)
    yield _point_table(history)
    if history.steps:
        yield Heading("Steps", level=2, is_page_only=True)
        yield _step_table(history)
        yield Line(
            "steps in tasks, net (up/down); p one-sided in the direction of the change; a step is "
            "`changed` where it clears the noise floor: net beyond its band at p ≤ 0.025, or more "
            "tasks moved than repeats of one commit explain"
        )
    for step in history.steps:
        if step.status != "unchanged":
            name = f"{step.from_[:7]}..{step.to[:7]} {step.status}"
            yield from lines(f"{name}: {reason}" for reason in step.reasons)
            yield from moved_lines(f"{name}, ", step.up_tasks, step.down_tasks, SHOWN_TASKS)
    controls = [control for step in history.steps for control in step.controls]
    yield from control_lines([*controls, *history.closing_controls])
    yield from warning_lines(history.warnings)


def _head(history: History) -> Iterator[Block]:
    counts = history.counts
    resumed = f" ({counts.resumed} of them before it was resumed)" if counts.resumed else ""
    yield Paragraph(
        f"executed {counts.executed}{resumed} · replayed {counts.replayed} · "
        f"tool failures {counts.infra} · {panel_words(history.name, history.panel.digest)} · "
        f"{counted(counts.points, 'point')} in {counted(counts.runs, 'run')}",
        is_strong=True,
    )
    commits = counted(len(history.points), "commit")
    title = f"{history.name}: {history.kind} of {history.arm} over {commits}"
    yield Heading(title, is_page_only=True)
    interrupted = " (interrupted)" if history.status == "interrupted" else ""
    yield Line(
        f"{history.kind} {history.run_id} · verdict {history.verdict}{interrupted} · evidence "
        f"{history.evidence} · {counted(counts.tasks, 'task')} · {history.wall_seconds:.1f} s"
    )
    yield Line(("panel ", Code(history.panel.digest)))
    floor = floor_words(history.noise.get(history.arm))
    yield Line(f"{history.arm} at {history.primary}; {floor}")
    total = history.sum
    if total is not None:
        adds_up = "add up" if total.adds_up else "DO NOT ADD UP"
        churn = f", {counted(total.churn, 'task')} moved there and back" if total.churn else ""
        yield Line(
            f"from end to end {tasks_words(total.ends_difference)}; the steps {adds_up} "
            f"({tasks_text(total.steps_difference)}{churn})"
        )


def moved_lines(
    name: str, up_tasks: Sequence[str], down_tasks: Sequence[str], most: int
) -> Iterator[Line]:
    """Which tasks went up, and which down; `name` says of what."""
    for word, tasks in (("up", up_tasks), ("down", down_tasks)):
        if tasks:
            yield Line(f"{name}{word}: {listed(tasks, most)}")


def control_lines(controls: Iterable[Drift]) -> Iterator[Line]:
    """That no control moved, where one was judged."""
    found = list(controls)
    if found and all(control.verdict == "NO_DRIFT" for control in found):
        names = dict.fromkeys(control.arm for control in found)
        yield Line(f"controls did not move: {', '.join(names)}")


def _point_table(history: History) -> Table:
    others = [arm for arm in history.roles if arm != history.arm]
    measures = next((list(point.measures) for point in history.points if point.measures), [])
    return Table(
        headers=["commit", "subject", "status", history.primary, *measures[1:], *others, "s"],
        rows=[_point_cells(history, point, measures[1:], others) for point in history.points],
        text_columns=3,
        prose=[1],
        styles=["" if point.status == "measured" else "dim" for point in history.points],
    )


def _point_cells(
    history: History, point: HistoryPoint, measures: list[str], others: list[str]
) -> list[str]:
    cells = [point.commit[:12], cut_text(point.subject, SUBJECT), _status(point)]
    if point.status != "measured":
        return [*cells, *["·"] * (1 + len(measures) + len(others)), _seconds(point.wall_seconds)]
    primary = point.measures[history.primary]
    count = "" if primary.count is None else f"{primary.count} of {primary.n} "
    cells.append(f"{count}{primary.value:.3f} [{primary.low:.2f}, {primary.high:.2f}]")
    for measure in measures:
        part = point.measures.get(measure)
        cells.append("" if part is None else f"{part.value:.3f}")
    for arm in others:
        part = point.arms.get(arm, {}).get(history.primary)
        if part is None or part.count is None:
            cells.append("" if part is None else f"{part.value:.3f}")
        else:
            cells.append(str(part.count))
    return [*cells, _seconds(point.wall_seconds)]


def _status(point: HistoryPoint) -> str:
    words = {
        "same_tree": f"as {(point.same_as or '')[:7]}",
        "measured": point.evidence or "measured",
    }.get(point.status, point.status)
    nothing = ", measured nothing" if point.measured_nothing else ""
    return f"{words}{nothing}{', degraded' if point.degraded else ''}"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f}"


def _step_table(history: History) -> Table:
    measures = [name for name in history.steps[0].measures if name != history.primary]
    moves = [f"{name} +/−" for name in (history.primary, *measures)]
    return Table(
        headers=["step", "subject", "status", moves[0], "95 %", "p", *moves[1:], "s"],
        rows=[_step_cells(history.primary, step, measures) for step in history.steps],
        text_columns=3,
        prose=[1],
        styles=[_STEP_STYLES.get(step.status, "") for step in history.steps],
    )


def _step_cells(primary: str, step: HistoryStep, measures: list[str]) -> list[str]:
    change = step.measures[primary]
    return [
        f"{step.from_[:7]}..{step.to[:7]}",
        cut_text(step.subject, SUBJECT),
        step.status,
        _moves(change),
        interval_text(change.low, change.high),
        p_words(change.p),
        *(_moves(step.measures[name]) for name in measures),
        _seconds(step.wall_seconds),
    ]


def _moves(change: Change) -> str:
    if not change.up and not change.down:
        return "0"
    return f"{tasks_text(change.difference)} ({change.up}/{change.down})"


# --- the plan of a backfill ----------------------------------------------------------------------


def plan_document(nodes: Sequence[Node], estimate: Estimate) -> Iterator[Line]:
    """The order in which points are measured, which trees are equal, and the estimated time."""
    ordered = order_nodes(nodes)
    commits = sum(len(node.commits) for node in nodes)
    yield Line(
        f"{counted(commits, 'commit')}, {counted(len(ordered), 'point')} (equal trees are "
        "measured once), in this order:"
    )
    for number, node in enumerate(ordered, start=1):
        commit = node.first
        text = f"{commit.commit[:12]}  {commit.committed_at[:10]}  {commit.subject}"
        yield Line(text, depth=1, number=number)
    if len(ordered) > 1:
        again = f"{ordered[0].first.commit[:12]}  once more, for the controls"
        yield Line(again, depth=1, number=len(ordered) + 1)
    for node in nodes:
        for commit in node.commits if node.is_repeated else node.commits[1:]:
            stand_in = nodes[node.stand_in].first.commit
            yield Line(f"{commit.commit[:12]} has the tree of {stand_in[:12]}")
    if estimate.measured_before:
        were = noun(estimate.measured_before, "was", "were")
        yield Line(
            f"{estimate.measured_before} of them {were} measured before: matching answers of "
            "candidates are replayed, controls are executed again"
        )
    if estimate.seconds is None or estimate.seconds_per_point is None:
        yield Line("estimated time: not known, no point of this panel was measured yet")
    else:
        yield Line(
            f"estimated time: {estimate.seconds:.0f} s, from {estimate.seconds_per_point:.1f} s "
            "for a point measured earlier"
        )


def plan_values(nodes: Sequence[Node], estimate: Estimate) -> dict[str, Any]:
    """The plan as JSON values."""
    return {
        "schema": 1,
        "commits": sum(len(node.commits) for node in nodes),
        "points": [
            {"commit": node.first.commit, "tree": node.tree, "subject": node.first.subject}
            for node in order_nodes(nodes)
        ],
        "measured_before": estimate.measured_before,
        "seconds_per_point": estimate.seconds_per_point,
        "estimated_seconds": estimate.seconds,
    }
