"""The steps of a history: what changed between neighbouring measured points. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from coldrun.tasks.history.history_model import HistoryStep
from coldrun.tasks.history.history_plan import Node
from coldrun.tasks.history.history_record import HistoryRecord
from coldrun.tasks.history.history_words import first_line
from coldrun.tasks.lib.plain_text import counted, noun
from coldrun.tasks.stats.decomposition import describe_moved, judge_step
from coldrun.tasks.stats.noise import Drift
from coldrun.tasks.stats.paired import adjust_holm


def _why_unsplit(record: HistoryRecord, before: Node, after: Node) -> Iterator[str]:
    if _count_commits(record, before, after) < 2:
        return
    between = record.nodes[before.place + 1 : after.place]
    entries = [record.journal.find(node.first.commit, 0) for node in between]
    failed = [entry for entry in entries if entry is not None and entry.reason]
    if failed:
        named = "; ".join(
            f"{entry.commit[:12]}: {first_line(entry.reason)}" for entry in failed[:2]
        )
        yield f"{len(failed)} of {counted(len(between), 'commit')} in between failed ({named})"
    elif record.is_interrupted:
        yield "it was interrupted before it could be split"
    elif between:
        was = noun(len(between), "was", "were")
        yield f"{counted(len(between), 'commit')} in between {was} not measured"
    else:
        yield "the commits in between were not selected"


def _count_commits(record: HistoryRecord, before: Node, after: Node) -> int:
    return sum(node.first.distance for node in record.nodes[before.place + 1 : after.place + 1])


def build_steps(record: HistoryRecord, closing: Sequence[Drift]) -> Iterator[HistoryStep]:
    """Judge the steps between neighbouring measured points, oldest first.

    `closing` are the controls between the first point and its repeat at the end.
    """
    arm, primary, yardstick = record.request.arm, record.request.primary, record.yardstick
    moved = [f"{text} in the closing re-run of the first point" for text in describe_moved(closing)]
    judged = [
        judge_step(
            first.outcome,
            second.outcome,
            arm=arm,
            yardstick=yardstick,
            unsplit=tuple(_why_unsplit(record, before, after)),
            confounders=tuple(moved),
        )
        for (before, first), (after, second) in pairwise(record.measured)
    ]
    adjusted = adjust_holm([step.changes[primary].p for step in judged]) if judged else ()
    for ((before, first), (after, second)), step, holm_p in zip(
        pairwise(record.measured), judged, adjusted, strict=True
    ):
        commits = _count_commits(record, before, after)
        between = record.nodes[before.place + 1 : after.place + 1]
        subject = after.first.subject
        yield HistoryStep(
            from_=before.first.commit,
            to=after.first.commit,
            commits=commits,
            subject=subject if commits == 1 else f"{commits} commits to: {subject}",
            status=step.status,
            measures={**step.changes, primary: replace(step.changes[primary], holm_p=holm_p)},
            up_tasks=list(step.changes[primary].up_tasks),
            down_tasks=list(step.changes[primary].down_tasks),
            reasons=list(step.reasons),
            clears_noise=step.clears_noise,
            is_docs_only=commits == len(between)
            and all(node.first.is_docs_only for node in between),
            wall_seconds=second.wall_seconds,
            controls=list(step.controls),
            others={
                name: dict(
                    judge_step(first.outcome, second.outcome, arm=name, yardstick=yardstick).changes
                )
                for name in first.outcome.arms
                if name != arm and name in second.outcome.arms
            },
        )
