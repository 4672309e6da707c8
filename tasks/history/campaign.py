"""Measuring the points of a history: backwards and forwards, by bisection, again after a crash."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from coldrun.tasks.history.history_plan import HistoryCommit, Node, order_nodes
from coldrun.tasks.history.history_requests import HistoryRequest
from coldrun.tasks.history.journal import Entry, Journal
from coldrun.tasks.history.outcomes import MeasuredRun, read_floors, read_runs
from coldrun.tasks.judge.land_judgement import run_here
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.errors import ColdrunError, RepositoryError, StorageError, UsageError
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.run.manifest import new_run_id
from coldrun.tasks.run.prepare import Evaluation, arm_digests
from coldrun.tasks.run.run_lifecycle import Mode, RunRequest, is_resumable
from coldrun.tasks.stats.decomposition import next_points, outcome_vector
from coldrun.tasks.stats.noise import PooledFloor

UNUSABLE = ("invalid", "incomplete")
"""Evidence of a run whose scores must not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRequest:
    """Which commit to measure, and how. `label` is for people."""

    evaluation: Evaluation
    request: RunRequest
    commit: str
    label: str


def measure_point(ask: PointRequest) -> Report:
    """Check out, set up, ask, land and judge one point; an interrupted one can be resumed."""
    report = run_here(ask.evaluation, ask.request, ask.commit).report
    current_watch().results.pop(report.run_id, None)
    return report


Measure = Callable[[PointRequest], Report]
"""Measures one point: `measure_point`, or a stage around it."""


PointState = Literal["begins", "measured", "failed", "known"]


class HistoryStopped(Exception):  # noqa: N818 - nothing went wrong
    """Somebody asked the history to stop; what was measured stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointEvent:
    """What people are told while points are measured."""

    commit: HistoryCommit
    number: int
    state: PointState
    note: str = ""


@dataclass(slots=True, kw_only=True)
class Campaign:
    """The points of one history, each measured once and written down in a journal."""

    request: HistoryRequest
    journal: Journal
    measure_one: Measure
    _known: dict[str, MeasuredRun] = field(default_factory=dict)
    _count: int = 0
    _arms: dict[str, str] = field(default_factory=dict)

    def measure(self, commit: HistoryCommit, *, repeat: int = 0, is_cold: bool = False) -> bool:
        """Measure a commit unless the journal has it, and say whether it has a usable run.

        Args:
            commit: What to measure.
            repeat: 0 the first time, then 1 and so on: a measurement of its own.
            is_cold: Execute every arm, whatever the mode.

        Raises:
            HistoryStopped: Somebody asked to stop.
            UsageError, StorageError: What would fail at every point.
        """
        if current_watch().is_stopping:
            raise HistoryStopped
        self._count += 1
        known = self.journal.find(commit.commit, repeat)
        if known is not None and known.status != "running":
            self._tell(commit, "known", known.reason or "measured already")
            return known.status == "measured"
        self._tell(commit, "begins")
        self._refuse_edits()
        began = time.monotonic()
        entry = Entry(commit=commit.commit, repeat=repeat, status="running")
        try:
            report = self._run(commit, entry, known, is_cold=is_cold)
        except ColdrunError as error:
            is_everywhere = isinstance(error, (UsageError, StorageError))
            if is_everywhere and not isinstance(error, RepositoryError):
                raise
            failure: str | None = str(error)
        else:
            if report.status == "interrupted":
                raise HistoryStopped
            entry = replace(entry, run_id=report.run_id)
            failure = _why_unusable(report)
        if failure is not None and current_watch().is_stopping:
            raise HistoryStopped
        entry = replace(
            entry,
            status="measured" if failure is None else "failed",
            reason=failure,
            seconds=time.monotonic() - began,
        )
        self.journal.note(entry)
        self._tell(commit, "measured" if failure is None else "failed", failure or "")
        return failure is None

    def run_of(self, commit: HistoryCommit) -> MeasuredRun | None:
        """The usable run of a commit's first measurement."""
        entry = self.journal.find(commit.commit, 0)
        if entry is None or entry.status != "measured" or entry.run_id is None:
            return None
        if entry.run_id not in self._known:
            self._known.update(read_runs(self.request.warehouse, [entry.run_id]))
        return self._known.get(entry.run_id)

    def _refuse_edits(self) -> None:
        """A history measures all of its points with the same adapters, programs and environment."""
        now = arm_digests(self.request.evaluation)
        self._arms = self._arms or now
        changed = sorted(name for name in now if now[name] != self._arms.get(name))
        if changed:
            raise UsageError(
                f"the files, programs or environment of {', '.join(changed)} changed while the "
                "history ran, so later points would be measured with something else; undo that and "
                "continue, or start anew"
            )

    def _run(
        self, commit: HistoryCommit, entry: Entry, known: Entry | None, *, is_cold: bool
    ) -> Report:
        resumed = known.run_id if known is not None else None
        if resumed is not None and is_resumable(self.request.warehouse, resumed):
            with suppress(UsageError):  # it was begun as something else: measure the point anew
                return self._ask(commit, entry, mode="resume", resume=resumed)
        return self._ask(commit, entry, mode="cold" if is_cold else self.request.mode)

    def _ask(
        self, commit: HistoryCommit, entry: Entry, *, mode: Mode, resume: str | None = None
    ) -> Report:
        run_id = resume or new_run_id(dt.datetime.now(dt.UTC))
        self.journal.note(replace(entry, run_id=run_id))
        evaluation = self.request.evaluation
        request = RunRequest(
            warehouse=self.request.warehouse,
            mode=mode,
            resume=resume,
            run_id=run_id,
            trials=self.request.trials,
            only_primary=True,
            always_executed=frozenset(
                arm.name
                for arm in evaluation.config.arms
                if arm.role != "candidate" or not arm.runs_program
            ),
        )
        label = f"point {commit.commit[:12]} {commit.subject[:40]}"
        return self.measure_one(
            PointRequest(evaluation=evaluation, request=request, commit=commit.commit, label=label)
        )

    def _tell(self, commit: HistoryCommit, state: PointState, note: str = "") -> None:
        event = PointEvent(commit=commit, number=self._count, state=state, note=note)
        current_watch().on_event(event)


def _why_unusable(report: Report) -> str | None:
    if report.evidence not in UNUSABLE:
        return None
    failures = [warning for warning in report.warnings if "failed in the tool itself" in warning]
    return "; ".join([*report.reasons, *failures[:1]]) or f"the run is {report.evidence}"


def measure_all(campaign: Campaign, nodes: Sequence[Node]) -> None:
    """Measure every tree once, from both ends inwards, and the first point once more at the end."""
    for node in order_nodes(nodes):
        campaign.measure(node.first)
    close_history(campaign, nodes)


def close_history(campaign: Campaign, nodes: Sequence[Node]) -> None:
    """Measure the first point once more, every arm executed, to see whether the machine drifted."""
    measured = [
        node for node in nodes if not node.is_repeated and campaign.run_of(node.first) is not None
    ]
    if len(measured) > 1:
        campaign.measure(measured[0].first, repeat=1, is_cold=True)


def decompose_nodes(campaign: Campaign, nodes: Sequence[Node]) -> None:
    """Measure both ends, then what is needed between them, then the first end once more.

    Where no repeat of the arm is stored, the last end is measured twice as well, so that a noise
    floor is known before anything is split (not when answers are reused: it would be a replay).

    Where an end cannot be measured, nothing else is.
    """
    ends = nodes[0].first, nodes[nodes[-1].stand_in].first
    are_measured = [campaign.measure(end) for end in ends]  # both, so that both reasons are known
    if not all(are_measured):
        return
    is_cold = campaign.request.mode == "cold"
    if is_cold and len(nodes) > 1 and _floor(campaign, nodes[0]) is None:
        campaign.measure(ends[1], repeat=1)
    if campaign.request.is_whole:
        for node in order_nodes(nodes[1:-1]):
            campaign.measure(node.first)
    else:
        _bisect(campaign, nodes)
    close_history(campaign, nodes)


def _bisect(campaign: Campaign, nodes: Sequence[Node]) -> None:
    """Split every interval whose ends differ by more than repeats of one point do.

    A point that cannot be measured is left out, and its neighbours are split around it.
    """
    request, floor = campaign.request, _floor(campaign, nodes[0])
    allowed = 0 if floor is None else floor.discordant_expected
    alive = list(range(len(nodes)))

    def differ(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
        moved = sum(one != other for one, other in zip(first, second, strict=True))
        return moved > allowed

    while True:
        known = {}
        for place, number in enumerate(alive):
            run = campaign.run_of(nodes[nodes[number].stand_in].first)
            if run is not None:
                known[place] = outcome_vector(run.outcome.arms[request.arm], request.primary)
        wanted = next_points(len(alive), known, differ)
        if not wanted:
            return
        chosen = [alive[place] for place in wanted]
        for number in chosen:
            commit = nodes[nodes[number].stand_in].first
            if not campaign.measure(commit) or campaign.run_of(commit) is None:
                alive.remove(number)


def _floor(campaign: Campaign, node: Node) -> PooledFloor | None:
    run, request = campaign.run_of(node.first), campaign.request
    floors = read_floors(request.warehouse, run, measure=request.primary) if run else {}
    return floors.get(request.arm)
