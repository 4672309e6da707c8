"""`coldrun runs`."""

from __future__ import annotations

from pathlib import Path

import click

from coldrun.cli.options import Outputs, report_options, warehouse_option


@click.command(
    "runs",
    epilog="""\b
Examples:
  coldrun runs
  coldrun runs --name click --json - | jq -r '.runs[0].run_id'
""",
)
@click.option("--name", help="Only the runs of this evaluation.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many runs to list, in every form.",
)
@report_options
@warehouse_option
def command(
    name: str | None,
    limit: int,
    outputs: Outputs,
    warehouse: Path,
) -> None:
    """List the runs in the warehouse, newest first, and those that can be resumed."""
    from coldrun.tasks.judge.warehouse_list import list_runs, list_unfinished
    from coldrun.tasks.report.warehouse_document import runs_document

    rows = list_runs(warehouse, name=name, limit=limit)
    unfinished = list_unfinished(warehouse)
    values = {"runs": rows, "unfinished": unfinished}
    document = runs_document(rows, unfinished, warehouse)
    outputs.show(document, values)
