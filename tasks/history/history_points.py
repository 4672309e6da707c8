"""The points of a history: every commit, measured or not, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coldrun.tasks.history.history_model import HistoryPoint, PointStatus, ScorePart
from coldrun.tasks.history.history_plan import HistoryCommit, Node
from coldrun.tasks.history.history_record import HistoryRecord
from coldrun.tasks.history.journal import Entry
from coldrun.tasks.history.outcomes import MeasuredRun
from coldrun.tasks.judge.gates import summarise
from coldrun.tasks.stats.measures import parse_measure


def build_points(record: HistoryRecord, node: Node) -> Iterator[HistoryPoint]:
    """Every commit of a node, with what is known of it."""
    for number, commit in enumerate(node.commits):
        if number or node.is_repeated:
            stand_in = record.nodes[node.stand_in].first if node.is_repeated else node.first
            yield _point(
                record,
                commit,
                "same_tree",
                run=record.run_of(node),
                same_as=stand_in.commit,
            )
        else:
            yield _own_point(record, node)


def _own_point(record: HistoryRecord, node: Node) -> HistoryPoint:
    entry, run = record.entry_of(node), record.run_of(node)
    if run is not None:
        return _point(record, node.first, "measured", run=run, entry=entry)
    if entry is not None and entry.status == "failed":
        return _point(record, node.first, "failed", reason=entry.reason, entry=entry)
    reason = "interrupted" if record.is_interrupted else "not needed: its neighbours look alike"
    return _point(record, node.first, "skipped", reason=reason)


def _point(
    record: HistoryRecord,
    commit: HistoryCommit,
    status: PointStatus,
    *,
    run: MeasuredRun | None = None,
    entry: Entry | None = None,
    same_as: str | None = None,
    reason: str | None = None,
) -> HistoryPoint:
    arms = {} if run is None else score_parts(run, record.seed)
    mine = None if run is None else run.outcome.arms.get(record.arm)
    return HistoryPoint(
        commit=commit.commit,
        tree=commit.tree,
        subject=commit.subject,
        status=status,
        measures=arms.get(record.arm, {}),
        committed_at=commit.committed_at,
        same_as=same_as,
        reason=reason,
        evidence=None if mine is None else mine.evidence,
        measured_nothing=run is not None and record.arm in run.nothing,
        replayed_from=[] if run is None else list(run.replayed_from),
        degraded=[] if mine is None else list(mine.degraded),
        environment_digest=None if run is None else run.outcome.environment_digest,
        wall_seconds=None if entry is None else entry.seconds,
        run_ids=[
            item.run_id
            for item in record.entries
            if item.commit == commit.commit and item.run_id is not None
        ],
        arms=arms,
    )


def score_parts(
    run: MeasuredRun, seed: int, *, only: str | None = None
) -> dict[str, dict[str, ScorePart]]:
    """Every arm's aggregates in a run, with intervals; of one measure alone when it is named."""
    found: dict[str, dict[str, ScorePart]] = {}
    for name, arm in run.outcome.arms.items():
        found[name] = {}
        for text, scores in arm.scores.items():
            if only not in (None, text):
                continue
            values = np.array([scores[task] for task in sorted(scores)])
            (part,) = summarise([values], [parse_measure(text)], seed)
            found[name][text] = ScorePart(
                value=part.value, count=part.count, n=len(values), low=part.low, high=part.high
            )
    return found
