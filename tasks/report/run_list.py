"""The runs of a warehouse: those that landed, and those that can be continued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coldrun.tasks.report.markdown import bullets, table_lines
from coldrun.warehouse.reader import connect, select_rows

HEADERS = ["run", "name", "verdict", "executed", "replayed", "failures", "seconds", "point"]


def list_runs(warehouse: Path, *, name: str | None = None, limit: int) -> list[dict[str, Any]]:
    """The newest landed runs first, as JSON values."""
    return select_rows(
        connect(warehouse, only=("runs",), leaves_out=True),
        "SELECT run_id, name, status, strftime(started_at, '%Y-%m-%dT%H:%M:%SZ') AS started_at, "
        "wall_seconds, panel_digest, verdict, evidence, exit_code, product_commit, is_dirty, "
        "planned, executed, replayed, resumed, infra FROM runs "
        "WHERE ? IS NULL OR name = ? ORDER BY runs.started_at DESC, run_id DESC LIMIT ?",
        [name, name, limit],
    )


def list_unfinished(warehouse: Path) -> list[str]:
    """The ids of the runs that can be continued, oldest first."""
    return sorted(path.parent.name for path in (warehouse / "captures").glob("*/run.json"))


def run_cells(row: Mapping[str, Any]) -> list[str]:
    """One row under `HEADERS`."""
    is_whole = row["status"] == "finished"
    return [
        row["run_id"],
        row["name"],
        row["verdict"] if is_whole else f"{row['verdict']} (interrupted)",
        *(str(row[key]) for key in ("executed", "replayed", "infra")),
        f"{row['wall_seconds']:.1f}",
        (row["product_commit"] or "")[:12],
    ]


def unfinished_line(run_id: str) -> str:
    """How to go on with a run that did not end."""
    return f"unfinished: {run_id} (continue with `coldrun run CONFIG --resume {run_id}`)"


def runs_markdown(rows: Sequence[Mapping[str, Any]], unfinished: Sequence[str]) -> str:
    """The list as Markdown."""
    lines = ["# Runs", "", *table_lines(HEADERS, map(run_cells, rows), text_columns=3), ""]
    return "\n".join([*lines, *bullets(map(unfinished_line, unfinished))])
