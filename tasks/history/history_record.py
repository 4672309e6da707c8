"""What a history left behind, and the points of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from coldrun.tasks.history.history_model import HistoryPoint, PointStatus, ScorePart
from coldrun.tasks.history.history_plan import Node
from coldrun.tasks.history.history_requests import HistoryRequest
from coldrun.tasks.history.journal import Entry, Journal
from coldrun.tasks.history.outcomes import MeasuredRun, panel_seed, read_floors, read_runs
from coldrun.tasks.judge.cost_model import pick
from coldrun.tasks.judge.gates import summarise
from coldrun.tasks.stats.decomposition import Yardstick
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.noise import PooledFloor


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord:
    """All that a history left behind. `runs` are usable runs by (commit, repeat)."""

    request: HistoryRequest
    journal: Journal
    nodes: tuple[Node, ...]
    runs: Mapping[tuple[str, int], MeasuredRun]
    floors: Mapping[str, PooledFloor | None]
    wall_seconds: float
    is_interrupted: bool

    @property
    def yardstick(self) -> Yardstick:
        """What its steps are judged by."""
        seed = panel_seed(self.request.evaluation.frozen.digest)
        return Yardstick(primary=self.request.primary, floors=self.floors, seed=seed)

    @property
    def measured(self) -> tuple[tuple[Node, MeasuredRun], ...]:
        """The nodes that have a run, that of an equal tree included."""
        return tuple((node, run) for node in self.nodes if (run := self.run_of(node)) is not None)

    def run_of(self, node: Node) -> MeasuredRun | None:
        """The run that stands for a node, that of an equal tree included."""
        return self.runs.get((self.nodes[node.stand_in].first.commit, 0))


def read_record(
    request: HistoryRequest,
    journal: Journal,
    nodes: tuple[Node, ...],
    *,
    wall_seconds: float,
    is_interrupted: bool,
) -> HistoryRecord:
    """Read the runs of a history back from the warehouse, and the noise floors they give."""
    entries = [entry for entry in journal.entries if entry.status == "measured"]
    runs = read_runs(request.warehouse, [entry.run_id for entry in entries if entry.run_id])
    floors: Mapping[str, PooledFloor | None] = {}
    if runs:
        newest = runs[max(runs)]
        floors = read_floors(request.warehouse, newest, measure=request.primary)
    return HistoryRecord(
        request=request,
        journal=journal,
        nodes=nodes,
        runs={
            (entry.commit, entry.repeat): runs[entry.run_id]
            for entry in entries
            if entry.run_id in runs
        },
        floors=floors,
        wall_seconds=wall_seconds,
        is_interrupted=is_interrupted,
    )


def build_points(record: HistoryRecord, node: Node) -> Iterator[HistoryPoint]:
    """Every commit of a node, with what is known of it."""
    arm, run = record.request.arm, record.run_of(node)
    stand_in = record.nodes[node.stand_in].first
    arms = score_parts(run, record.yardstick.seed) if run else {}
    mine = run and run.outcome.arms.get(arm)
    for commit in node.commits:
        is_own = commit == stand_in
        status, entry, reason = _standing(record, node) if is_own else ("same_tree", None, None)
        yield pick(
            HistoryPoint,
            commit,
            status=status,
            measures=arms.get(arm, {}),
            same_as=None if is_own else stand_in.commit,
            reason=reason,
            evidence=mine and mine.evidence,
            measured_nothing=run is not None and arm in run.nothing,
            replayed_from=run.replayed_from if run else (),
            degraded=mine.degraded if mine else (),
            environment_digest=run and run.outcome.environment_digest,
            wall_seconds=entry and entry.seconds,
            run_ids=[
                item.run_id
                for item in record.journal.entries
                if item.commit == commit.commit and item.run_id is not None
            ],
            arms=arms,
        )


def _standing(record: HistoryRecord, node: Node) -> tuple[PointStatus, Entry | None, str | None]:
    """How the commit stands that stands for a node, its entry, and why it was not measured."""
    entry = record.journal.find(node.first.commit, 0)
    if record.run_of(node) is not None:
        return "measured", entry, None
    if entry is not None and entry.status == "failed":
        return "failed", entry, entry.reason
    is_cut = record.is_interrupted
    return "skipped", None, "interrupted" if is_cut else "not needed: its neighbours look alike"


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
            found[name][text] = pick(ScorePart, part, n=len(values))
    return found
