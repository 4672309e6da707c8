"""The life of a history: planned, measured point by point, judged, landed. No orchestrator here."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from coldrun.tasks.history.build_history import HistoryRecord, build_history
from coldrun.tasks.history.campaign import (
    Campaign,
    HistoryStopped,
    Measure,
    decompose_nodes,
    measure_all,
    measure_point,
)
from coldrun.tasks.history.history_model import History
from coldrun.tasks.history.history_plan import Node, build_nodes
from coldrun.tasks.history.history_requests import HistoryRequest
from coldrun.tasks.history.journal import Entry, Journal, hold_journal
from coldrun.tasks.history.outcomes import MeasuredRun, read_floors, read_runs
from coldrun.tasks.run.manifest import new_run_id
from coldrun.tasks.run.prepare import Evaluation
from coldrun.warehouse.reader import connect, select_rows
from coldrun.warehouse.writer import prepare_warehouse, write_rows


def conduct_history(request: HistoryRequest, measure: Measure = measure_point) -> History:
    """Measure the points that are asked for, by `measure`, and judge what changed between them.

    Gives the report of an interrupted history too; asking for the same again continues it.
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
        campaign = Campaign(request=request, journal=journal, measure_one=measure)
        is_interrupted = False
        try:
            if request.kind == "backfill":
                measure_all(campaign, nodes)
            else:
                decompose_nodes(campaign, nodes)
        except HistoryStopped:
            is_interrupted = True
        runs = _read_runs(request.warehouse, journal)
        newest = max(runs.values(), key=lambda run: run.run_id, default=None)
        primary = request.primary
        floors = read_floors(request.warehouse, newest, measure=primary) if newest else {}
        history = build_history(
            HistoryRecord(
                request=request,
                journal=journal,
                nodes=nodes,
                runs=runs,
                floors=floors,
                wall_seconds=time.monotonic() - began,
                is_interrupted=is_interrupted,
            )
        )
        _land(request, journal, history)
        if not is_interrupted:
            journal.save(is_finished=True)
        return history


def _read_runs(warehouse: Path, journal: Journal) -> dict[tuple[str, int], MeasuredRun]:
    """The usable runs of a history by commit and repeat, read back from the warehouse."""
    entries = [entry for entry in journal.entries if entry.status == "measured"]
    runs = read_runs(warehouse, [entry.run_id for entry in entries if entry.run_id])
    return {
        (entry.commit, entry.repeat): runs[entry.run_id]
        for entry in entries
        if entry.run_id in runs
    }


def _land(request: HistoryRequest, journal: Journal, history: History) -> None:
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
