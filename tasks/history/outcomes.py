"""Measured points read back from the warehouse, and the noise floors that its repeats give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coldrun.tasks.config import ProcessArm
from coldrun.tasks.history.history_model import ScorePart
from coldrun.tasks.judge.cost_model import pick
from coldrun.tasks.judge.gates import summarise
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.run.capture_key import differing_components
from coldrun.tasks.run.manifest import Manifest, read_manifest
from coldrun.tasks.stats.decomposition import ArmAtPoint, PointOutcome
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.noise import PooledFloor, pool_noise_floor
from coldrun.warehouse.digests import verify_run
from coldrun.warehouse.reader import connect, find_run_id, select_rows

OWN_COLUMNS = ("run_id", "name", "status", "verdict", "evidence", "wall_seconds", "panel_digest")
"""What a measured run takes from its row as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A landed run as history sees it: what it was, what it counted, what each arm scored.

    `nothing` names the arms that measured nothing: they did not beat the nulls.
    """

    run_id: str
    name: str
    status: str
    verdict: str
    evidence: str
    started_at: str
    wall_seconds: float
    panel_digest: str
    measures: tuple[str, ...]
    counts: Mapping[str, int]
    manifest: Manifest
    outcome: PointOutcome
    nothing: tuple[str, ...] = ()
    replayed_from: tuple[str, ...] = ()


ARM_TABLES = ("runs", "captures", "scores", "arm_runs")


def panel_seed(panel_digest: str) -> int:
    """The seed of resamples, as a run of this panel has it."""
    return int(panel_digest.removeprefix("sha256:")[:8], 16)


def read_runs(warehouse: Path, run_ids: Sequence[str]) -> dict[str, MeasuredRun]:
    """Landed runs by id; ids that have not landed are left out."""
    if not run_ids:
        return {}
    connection = connect(warehouse, only=ARM_TABLES, runs=run_ids, leaves_out=True)
    wanted = [sorted(set(run_ids))]
    runs = select_rows(connection, "SELECT * FROM runs WHERE run_id IN (SELECT unnest(?))", wanted)
    arms: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in select_rows(
        connection,
        "WITH by_measure AS (SELECT run_id, arm, measure, any_value(evidence) AS evidence, "
        "any_value(measured_nothing) AS nothing, map(list(task_id), list(value)) AS by_task "
        "FROM scores WHERE run_id IN (SELECT unnest(?)) GROUP BY ALL), "
        "by_arm AS (SELECT run_id, arm, any_value(evidence) AS evidence, "
        "any_value(nothing) AS nothing, map(list(measure), list(by_task)) AS scores "
        "FROM by_measure GROUP BY ALL) "
        "SELECT by_arm.*, degraded, degraded_answers, abstained, source_run_ids "
        "FROM by_arm LEFT JOIN arm_runs USING (run_id, arm) ORDER BY run_id, arm",
        wanted,
    ):
        arms[row["run_id"]][row["arm"]] = row
    for row in runs:
        if row["run_id"] in arms:
            verify_run(warehouse, row)
    return {row["run_id"]: _run(row, arms[row["run_id"]]) for row in runs}


def read_run(warehouse: Path, text: str) -> MeasuredRun:
    """The landed run that `text` names (an id, the start of one, or `last`)."""
    run_id = find_run_id(connect(warehouse, only=("runs",), leaves_out=True), text)
    run = read_runs(warehouse, [run_id])[run_id]
    if not run.outcome.arms:
        raise UsageError(
            f"run {run_id} has no rows in {warehouse / 'scores'}: its file there is missing; "
            "restore it"
        )
    return run


def read_floors(
    warehouse: Path, run: MeasuredRun, *, measure: str
) -> dict[str, PooledFloor | None]:
    """The noise floor of each arm of a run, as the warehouse's repeats of that arm give it.

    A repeat is a run that asked the same questions of the same code and executed every answer.
    Repeats at any point of the product count, as long as the arm itself is the same.
    """
    own = select_rows(
        connect(warehouse, only=ARM_TABLES, runs=[run.run_id], leaves_out=True),
        "SELECT arm_identity FROM arm_runs",
    )
    rows = select_rows(
        connect(warehouse, only=ARM_TABLES, leaves_out=True),
        "WITH repeats AS (SELECT a.arm, a.identity, a.run_id, "
        "list(s.value ORDER BY s.task_id) AS outcomes "
        "FROM arm_runs a JOIN scores s ON a.run_id = s.run_id AND a.arm = s.arm "
        "WHERE a.arm_identity IN (SELECT unnest(?)) "
        "AND a.panel_digest = ? AND s.measure = ? AND a.replayed = 0 AND a.status = 'finished' "
        "AND a.verdict NOT IN ('invalid', 'did_not_run') GROUP BY a.arm, a.identity, a.run_id) "
        "SELECT arm, list(outcomes ORDER BY run_id) AS outcomes FROM repeats "
        "GROUP BY arm, identity ORDER BY min(run_id)",
        [[row["arm_identity"] for row in own], run.panel_digest, measure],
    )
    tables: dict[str, list[FloatArray]] = defaultdict(list)
    for row in rows:
        tables[row["arm"]].append(np.array(row["outcomes"]))
    return {arm: pool_noise_floor(tables[arm]) for arm in run.outcome.arms}


def _run(row: Mapping[str, Any], arms: Mapping[str, Mapping[str, Any]]) -> MeasuredRun:
    manifest, _ = read_manifest(row["run_id"], row["manifest"])
    measures = manifest.config.measures
    return MeasuredRun(
        **{name: row[name] for name in OWN_COLUMNS},
        started_at=manifest.started_at,
        measures=measures,
        counts={
            **{name: row[name] for name in ("planned", "executed", "replayed", "resumed", "infra")},
            "abstained": sum(arm["abstained"] or 0 for arm in arms.values()),
            "degraded": sum(arm["degraded_answers"] or 0 for arm in arms.values()),
        },
        manifest=manifest,
        outcome=PointOutcome(
            run_id=row["run_id"],
            commit=row["product_commit"],
            environment_digest=row["environment_digest"],
            arms={
                arm.name: ArmAtPoint(
                    role=arm.role,
                    is_builtin=not isinstance(arm, ProcessArm),
                    evidence=arms[arm.name]["evidence"],
                    scores={
                        measure: arms[arm.name]["scores"][measure]
                        for measure in measures
                        if measure in arms[arm.name]["scores"]
                    },
                    degraded=tuple(arms[arm.name]["degraded"] or ()),
                )
                for arm in manifest.config.arms
                if arm.name in arms
            },
        ),
        replayed_from=tuple(
            sorted({run_id for arm in arms.values() for run_id in arm["source_run_ids"] or ()})
        ),
        nothing=tuple(name for name, arm in arms.items() if arm["nothing"]),
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
            found[name][text] = pick(ScorePart, part, n=len(values))
    return found


def read_key_differences(warehouse: Path, first: str, second: str) -> dict[str, tuple[str, ...]]:
    """By arm, the components in which the keys of two runs' answers differ."""
    rows = select_rows(
        connect(warehouse, only=("captures",), leaves_out=True),
        "SELECT a.arm, a.key_parts AS first, b.key_parts AS second FROM captures a "
        "JOIN captures b ON a.arm = b.arm AND a.task_id = b.task_id AND a.trial = b.trial "
        "WHERE a.run_id = ? AND b.run_id = ? "
        "QUALIFY row_number() OVER (PARTITION BY a.arm ORDER BY a.task_id, a.trial) = 1",
        [first, second],
    )
    return {
        row["arm"]: differing_components(dict(row["first"]), dict(row["second"])) for row in rows
    }
