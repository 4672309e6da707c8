"""`coldrun runs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cli.options import catch_errors, warehouse_option


@click.command(
    "runs",
    epilog="""\b
Examples:
  coldrun runs
  coldrun runs --name click --json - | jq '.[0].run_id'
""",
)
@click.option("--name", help="Only the runs of this evaluation.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--json", "json_file", metavar="FILE", help="Write as JSON; - for stdout.")
@warehouse_option
@catch_errors
def command(name: str | None, limit: int, json_file: str | None, warehouse: Path) -> None:
    """List the runs in the warehouse, newest first, and those that can be resumed."""
    from cli.options import people_console, write_json
    from tasks.report.terminal import make_table

    rows = _landed(warehouse, name, limit)
    unfinished = sorted(path.parent.name for path in (warehouse / "captures").glob("*/run.json"))
    if json_file is not None:
        write_json(json_file, json.dumps({"runs": rows, "unfinished": unfinished}, indent=1))
    if json_file == "-":
        return
    console = people_console()
    if not rows and not unfinished:
        console.print(f"no runs in {warehouse} yet; `coldrun try .` makes one", soft_wrap=True)
        return
    headers = ["run", "name", "verdict", "executed", "replayed", "infra", "seconds", "point"]
    table = make_table(headers)
    for row in rows:
        table.add_row(
            row["run_id"],
            row["name"],
            row["verdict"] if row["status"] == "finished" else f"{row['verdict']} (interrupted)",
            *(str(row[key]) for key in ("executed", "replayed", "infra")),
            f"{row['wall_seconds']:.1f}",
            (row["product_commit"] or "")[:12],
        )
    console.print(table)
    for run_id in unfinished:
        console.print(
            f"unfinished: {run_id} (continue with `coldrun run CONFIG --resume {run_id}`)"
        )


def _landed(warehouse: Path, name: str | None, limit: int) -> list[dict[str, Any]]:
    from warehouse.reader import connect, select_rows

    return select_rows(
        connect(warehouse),
        "SELECT run_id, name, status, strftime(started_at, '%Y-%m-%dT%H:%M:%SZ') AS started_at, "
        "wall_seconds, panel_digest, verdict, evidence, exit_code, product_commit, is_dirty, "
        "planned, executed, replayed, resumed, infra FROM runs "
        "WHERE ? IS NULL OR name = ? ORDER BY runs.started_at DESC LIMIT ?",
        [name, name, limit],
    )
