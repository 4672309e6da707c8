"""The life of a history: planned, measured point by point, judged, landed. No orchestrator here."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from coldrun.tasks.config import Config
from coldrun.tasks.history.build_history import build_history
from coldrun.tasks.history.campaign import (
    Campaign,
    HistoryMode,
    HistoryStopped,
    Measure,
    Search,
    decompose_nodes,
    measure_all,
)
from coldrun.tasks.history.history_model import History
from coldrun.tasks.history.history_plan import HistoryCommit, Node, build_nodes
from coldrun.tasks.history.history_record import HistoryRecord
from coldrun.tasks.history.journal import Entry, Journal, hold_journal
from coldrun.tasks.history.measure_point import measure_point
from coldrun.tasks.history.outcomes import read_floors, read_runs
from coldrun.tasks.lib.errors import ConfigError, UsageError
from coldrun.tasks.lib.own_code import own_code
from coldrun.tasks.run.manifest import new_run_id
from coldrun.tasks.run.prepare import Evaluation
from coldrun.warehouse.reader import connect, select_rows
from coldrun.warehouse.writer import prepare_warehouse, write_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """What is asked for. `commits` are the history, oldest first; `arm` is the one looked at.

    `known` maps commits to runs that were executed for this very history and count as its own.
    """

    kind: Literal["backfill", "decompose"]
    evaluation: Evaluation
    warehouse: Path
    commits: tuple[HistoryCommit, ...]
    arm: str
    mode: HistoryMode
    is_whole: bool = True
    trials: int | None = None
    notes: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)

    def to_values(self) -> dict[str, Any]:
        """All that decides what is measured: an unfinished journal of the same is continued."""
        return {
            "kind": self.kind,
            "name": self.evaluation.frozen.name,
            "config": self.evaluation.config.model_dump(mode="json", exclude={"prices"}),
            "config_path": str(self.evaluation.config_path),
            "panel": self.evaluation.frozen.digest,
            "commits": [commit.commit for commit in self.commits],
            "arm": self.arm,
            "mode": self.mode,
            "is_whole": self.is_whole,
            "trials": self.trials,
            "known": dict(self.known),
            "code": dict(own_code()),
        }


def conduct_history(request: HistoryRequest, measure: Measure = measure_point) -> History:
    """Measure the points that are asked for, by `measure`, and judge what changed between them.

    Returns:
        The report; of an interrupted history too, with what was measured. Asking for the same
        again continues it.

    Raises:
        UsageError, StorageError: What would fail at every point; measured points stay.
    """
    began = time.monotonic()
    now = dt.datetime.now(dt.UTC)
    prepare_warehouse(request.warehouse)
    nodes = build_nodes(request.commits)
    with hold_journal(
        request.warehouse, request.to_values(), new_id=new_run_id(now), now=now.isoformat()
    ) as journal:
        for commit, run_id in request.known.items():
            if journal.find(commit, 0) is None:
                journal.note(Entry(commit=commit, repeat=0, status="measured", run_id=run_id))
        is_interrupted = False
        try:
            _measure(request, measure, journal, nodes)
        except HistoryStopped:
            is_interrupted = True
        history = build_history(
            _record(
                request,
                journal,
                nodes,
                wall_seconds=time.monotonic() - began,
                is_interrupted=is_interrupted,
            )
        )
        _land(request, journal, history)
        if not is_interrupted:
            journal.save(is_finished=True)
        return history


def choose_arm(config: Config, name: str | None) -> str:
    """The arm that a history looks at: the named one, else the first candidate, else the first.

    Raises:
        UsageError: There is no such arm.
    """
    names = [arm.name for arm in config.arms]
    if name is None:
        candidates = [arm.name for arm in config.arms if arm.role == "candidate"]
        return (candidates or names)[0]
    if name not in names:
        raise UsageError(f"no arm {name!r}; the configuration has {', '.join(names)}")
    return name


def require_product_arm(config: Config) -> None:
    """Refuse a history in which no arm runs the product.

    Raises:
        ConfigError: All arms are built in.
    """
    if not any(arm.runs_program for arm in config.arms):
        raise ConfigError(
            "no arm runs the product, so nothing could differ between its commits; add an "
            "[[arm]] with the `argv` of a program in it"
        )


def fresh_arms(config: Config) -> frozenset[str]:
    """The arms that are executed at every point: all but candidates that run the product."""
    return frozenset(
        arm.name for arm in config.arms if arm.role != "candidate" or not arm.runs_program
    )


def _measure(
    request: HistoryRequest, measure: Measure, journal: Journal, nodes: Sequence[Node]
) -> None:
    campaign = Campaign(
        evaluation=request.evaluation,
        warehouse=request.warehouse,
        journal=journal,
        mode=request.mode,
        measure_one=measure,
        fresh_arms=fresh_arms(request.evaluation.config),
        trials=request.trials,
    )
    if request.kind == "backfill":
        measure_all(campaign, nodes)
    else:
        primary = request.evaluation.config.primary
        search = Search(arm=request.arm, measure=primary, is_whole=request.is_whole)
        decompose_nodes(campaign, nodes, search)


def _record(
    request: HistoryRequest,
    journal: Journal,
    nodes: tuple[Node, ...],
    *,
    wall_seconds: float,
    is_interrupted: bool,
) -> HistoryRecord:
    primary = request.evaluation.config.primary
    entries = [entry for entry in journal.entries if entry.status == "measured"]
    runs = read_runs(request.warehouse, [entry.run_id for entry in entries if entry.run_id])
    newest = runs[max(runs)] if runs else None
    notes = list(request.notes)
    if journal.is_continued:
        notes.append(
            f"continued after an interruption; begun at {journal.started_at}, and the seconds of "
            "the whole are those since it was continued"
        )
    return HistoryRecord(
        kind=request.kind,
        history_id=journal.history_id,
        frozen=request.evaluation.frozen,
        arm=request.arm,
        primary=primary,
        started_at=journal.started_at,
        wall_seconds=wall_seconds,
        is_interrupted=is_interrupted,
        nodes=nodes,
        entries=journal.entries,
        runs={
            (entry.commit, entry.repeat): runs[entry.run_id]
            for entry in entries
            if entry.run_id in runs
        },
        floors={} if newest is None else read_floors(request.warehouse, newest, measure=primary),
        notes=tuple(notes),
    )


def _land(request: HistoryRequest, journal: Journal, history: History) -> None:
    """Land one row per commit, failed ones included."""
    product = request.evaluation.config.product
    now = dt.datetime.now(dt.UTC)
    rows = [
        {
            "run_id": journal.history_id,
            "kind": request.kind,
            "name": request.evaluation.frozen.name,
            "panel_digest": request.evaluation.frozen.digest,
            "recorded_at": now,
            "product_repo": product and product.repo,
            "product_commit": point.commit,
            "product_tree": point.tree,
            "subject": point.subject,
            "committed_at": dt.datetime.fromisoformat(point.committed_at),
            "status": point.status,
            "reason": point.reason,
            "point_seconds": point.wall_seconds,
            "point_run_ids": point.run_ids,
        }
        for point in history.points
    ]
    write_rows(request.warehouse, "points", journal.history_id, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a backfill would cost. `seconds_per_point` is None when nothing like it was run."""

    points: int
    measured_before: int
    seconds_per_point: float | None

    @property
    def seconds(self) -> float | None:
        """The time for all points and the repeat of the first."""
        each = self.seconds_per_point
        return None if each is None else each * (self.points + (self.points > 1))


def estimate_history(evaluation: Evaluation, warehouse: Path, nodes: Sequence[Node]) -> Estimate:
    """Estimate the time of a backfill from earlier points and runs of the same panel."""
    distinct = [node for node in nodes if not node.is_repeated]
    digest = evaluation.frozen.digest
    connection = connect(warehouse)
    points = select_rows(
        connection,
        "SELECT point_seconds AS seconds FROM points WHERE panel_digest = ? "
        "AND status = 'measured' AND point_seconds IS NOT NULL",
        [digest],
    )
    runs = select_rows(
        connection,
        "SELECT wall_seconds AS seconds, product_tree FROM runs WHERE panel_digest = ? "
        "AND status = 'finished' AND product_tree IS NOT NULL AND executed > 0",
        [digest],
    )
    trees = {row["product_tree"] for row in runs}
    seconds = [row["seconds"] for row in points or runs]
    return Estimate(
        points=len(distinct),
        measured_before=sum(node.tree in trees for node in distinct),
        seconds_per_point=median(seconds) if seconds else None,
    )


def measured_before(evaluation: Evaluation, warehouse: Path) -> frozenset[str]:
    """Commits and trees of the product that were measured, or tried, on the present panel."""
    rows = select_rows(
        connect(warehouse),
        "SELECT product_commit, product_tree FROM runs WHERE panel_digest = $1 "
        "AND status = 'finished' AND product_commit IS NOT NULL AND NOT is_dirty "
        "UNION SELECT product_commit, product_tree FROM points WHERE panel_digest = $1 "
        "AND status IN ('measured', 'failed')",
        [evaluation.frozen.digest],
    )
    return frozenset(
        value for row in rows for value in (row["product_commit"], row["product_tree"]) if value
    )
