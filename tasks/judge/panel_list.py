"""The panels of a warehouse, with what each was used for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.config import Config, parse_config
from coldrun.tasks.config.ablation import refuse_verdict
from coldrun.tasks.freeze.parts import primary_tasks
from coldrun.tasks.judge.run_analysis import null_means
from coldrun.tasks.lib.plain_text import one_line
from coldrun.tasks.lib.safe_json import load_object
from coldrun.tasks.run.landed_rows import select_tasks
from coldrun.tasks.run.manifest import UNREADABLE
from coldrun.warehouse.damage import UnreadableFileWarning
from coldrun.warehouse.reader import connect, select_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelScore:
    """One arm at the primary measure in a panel's newest run; None where it is withheld.

    The nulls come first. Without them a score says nothing.
    """

    arm: str
    role: str
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLine:
    """One panel. `uses` is its contamination ledger, by date.

    `openings` of its sealed part gave something back, `fruitless` ones were interrupted or failed,
    as the newest run's lock knew them; an older lock knows their sum alone (`openings` is None).
    """

    name: str
    digest: str
    tasks: int
    runs: int
    newest_run: str
    newest_at: str
    verdict: str
    primary: str
    uses: tuple[str, ...]
    sealed: int
    openings: int | None
    fruitless: int
    scores: tuple[PanelScore, ...]


def list_panels(warehouse: Path, *, name: str | None = None) -> list[PanelLine]:
    """Every panel in the warehouse by its newest run, newest first.

    What a panel was used for is read from the configuration of that run, where `used_for` says so.
    """
    connection = connect(warehouse, only=("runs", "tasks", "scores", "arm_scores"), leaves_out=True)
    rows = select_rows(
        connection,
        "SELECT run_id, name, panel_digest, verdict, evidence, manifest, "
        "strftime(started_at, '%Y-%m-%dT%H:%M:%SZ') AS started_at, "
        "count(*) OVER (PARTITION BY panel_digest) AS runs FROM runs "
        "WHERE ? IS NULL OR name = ? "
        "QUALIFY row_number() OVER "
        "(PARTITION BY panel_digest ORDER BY runs.started_at DESC, run_id DESC) = 1 "
        "ORDER BY runs.started_at DESC, run_id DESC",
        [name, name],
    )
    return [line for row in rows if (line := _line(connection, row)) is not None]


def _line(connection: Any, row: Mapping[str, Any]) -> PanelLine | None:
    try:
        manifest = load_object(row["manifest"])
        config = parse_config(manifest["config"], source="the run's manifest")
        lock = manifest["lock"]
    except UNREADABLE as error:
        warnings.warn(
            f"the panel {row['panel_digest']} is left out: what run {row['run_id']} was started "
            f"with is not readable by this version of coldrun ({one_line(str(error))})",
            UnreadableFileWarning,
            stacklevel=2,
        )
        return None
    holdout = lock.get("holdout") or {}
    count = holdout.get("count", 0)
    openings = holdout.get("opened") if count else 0
    return PanelLine(
        name=row["name"],
        digest=row["panel_digest"],
        tasks=lock["panel"]["tasks"],
        runs=row["runs"],
        newest_run=row["run_id"],
        newest_at=row["started_at"],
        verdict=row["verdict"],
        primary=config.primary,
        uses=tuple(
            f"{use.use} since {use.since}{f' ({use.note})' if use.note else ''}"
            for use in sorted(config.panel.used_for, key=lambda use: use.since)
        ),
        sealed=(lock.get("sealed") or {}).get("count", 0),
        openings=openings,
        fruitless=count - (openings or 0),
        scores=tuple(_scores(connection, row, config, lock)),
    )


def _scores(
    connection: Any, row: Mapping[str, Any], config: Config, lock: Mapping[str, Any]
) -> Iterator[PanelScore]:
    tasks = primary_tasks(select_tasks(connection, row["run_id"]), lock)
    if tasks:
        nulls = null_means(tasks, config, lock, measure=config.primary)
        for name, value in nulls.items():
            yield PanelScore(arm=name, role="null", value=value)
    is_void = row["evidence"] in ("invalid", "incomplete")
    refused = {
        arm.name
        for arm in config.arms
        if refuse_verdict(arm.name, arm.component, config.panel.gold_from) is not None
    }
    for score in select_rows(
        connection,
        "SELECT arm, role, value, measured_nothing FROM arm_scores "
        "WHERE run_id = ? AND measure = ? ORDER BY arm",
        [row["run_id"], config.primary],
    ):
        is_withheld = is_void or score["measured_nothing"] or score["arm"] in refused
        told = None if is_withheld else score["value"]
        yield PanelScore(arm=score["arm"], role=score["role"], value=told)
