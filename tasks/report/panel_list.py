"""The panels that were asked, each with what it was used for and its newest run."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.config import Config, parse_config
from coldrun.tasks.config.gold_from import refuse_verdict
from coldrun.tasks.judge.run_analysis import null_means
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.plain_text import counted, one_line, times
from coldrun.tasks.lib.records import Task
from coldrun.tasks.report.markdown import outline
from coldrun.tasks.report.run_words import short_digest
from coldrun.tasks.run.find_captures import select_tasks
from coldrun.warehouse.reader import UnreadableFileWarning, connect, select_rows

UNDECLARED = "not declared"


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

    def to_values(self) -> dict[str, Any]:
        """The line as JSON values."""
        return asdict(self)


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


def use_words(config: Config) -> tuple[str, ...]:
    """The contamination ledger of a panel, oldest first."""
    uses = sorted(config.panel.used_for, key=lambda use: use.since)
    return tuple(
        f"{use.use} since {use.since}{f' ({use.note})' if use.note else ''}" for use in uses
    )


def panel_lines(panel: PanelLine) -> Iterator[str]:
    """A panel in sentences: what it is, what it was used for, what its newest run found."""
    yield (
        f"{panel.name} {short_digest(panel.digest)} · {counted(panel.tasks, 'task')} · "
        f"{counted(panel.runs, 'run')} · newest {panel.newest_run} of {panel.newest_at}: "
        f"{panel.verdict}"
    )
    yield f"  used for: {'; '.join(panel.uses) or UNDECLARED}"
    if panel.sealed:
        yield f"  sealed: {counted(panel.sealed, 'task')}, {_opening_words(panel)}"
    scores = [
        f"{score.arm} " + ("withheld" if score.value is None else f"{score.value:.3f}")
        for score in panel.scores
    ]
    yield f"  {panel.primary}: {', '.join(scores) or 'no arm'}"


def panels_markdown(panels: Sequence[PanelLine]) -> str:
    """The same as Markdown."""
    lines = outline(line for panel in panels for line in panel_lines(panel))
    return "\n".join(["# Panels", "", *lines])


def _opening_words(panel: PanelLine) -> str:
    if panel.openings is None:
        return f"asked {times(panel.fruitless)} before that run, whether or not anything came back"
    opened = f"opened {times(panel.openings)} before that run"
    if not panel.fruitless:
        return opened
    return f"{opened}; interrupted or failed {times(panel.fruitless)}"


def _line(connection: Any, row: Mapping[str, Any]) -> PanelLine | None:
    try:
        manifest = json.loads(row["manifest"])
        config = parse_config(manifest["config"], source="the run's manifest")
        lock = manifest["lock"]
    except (ValueError, KeyError, TypeError, ConfigError) as error:
        warnings.warn(
            f"the panel {row['panel_digest']} is left out: what run {row['run_id']} was started "
            f"with is not readable by this version of coldrun ({one_line(str(error))})",
            UnreadableFileWarning,
            stacklevel=2,
        )
        return None
    holdout = lock.get("holdout") or {}
    lines, openings = holdout.get("count", 0), holdout.get("opened")
    if not lines:
        openings = 0
    found = select_rows(
        connection,
        "SELECT arm, role, value, measured_nothing FROM arm_scores "
        "WHERE run_id = ? AND measure = ? ORDER BY arm",
        [row["run_id"], config.primary],
    )
    is_evidence = row["evidence"] not in ("invalid", "incomplete")
    refused = {
        arm.name
        for arm in config.arms
        if refuse_verdict(arm.name, arm.component, config.panel.gold_from) is not None
    }
    return PanelLine(
        name=row["name"],
        digest=row["panel_digest"],
        tasks=lock["panel"]["tasks"],
        runs=row["runs"],
        newest_run=row["run_id"],
        newest_at=row["started_at"],
        verdict=row["verdict"],
        primary=config.primary,
        uses=use_words(config),
        sealed=(lock.get("sealed") or {}).get("count", 0),
        openings=openings,
        fruitless=lines - (openings or 0),
        scores=(
            *_null_scores(select_tasks(connection, row["run_id"]), config, lock),
            *(
                PanelScore(
                    arm=score["arm"],
                    role=score["role"],
                    value=(
                        score["value"]
                        if is_evidence
                        and not score["measured_nothing"]
                        and score["arm"] not in refused
                        else None
                    ),
                )
                for score in found
            ),
        ),
    )


def _null_scores(
    tasks: Sequence[Task], config: Config, lock: Mapping[str, Any]
) -> Iterator[PanelScore]:
    """The nulls at the primary measure; none where the tasks of the run cannot be read."""
    if not tasks:
        return
    for name, value in null_means(tasks, config, lock, measure=config.primary).items():
        yield PanelScore(arm=name, role="null", value=value)
