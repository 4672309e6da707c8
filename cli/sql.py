"""`coldrun sql`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from coldrun.cli.options import Outputs, report_options, warehouse_option


@click.command(
    "sql",
    epilog="""\b
Examples:
  coldrun sql "SELECT arm, measure, value, n FROM arm_scores"
  coldrun sql "SELECT arm, sum(cost), any_value(currency) FROM answer_costs GROUP BY arm"
  coldrun sql "SELECT * FROM flips WHERE measure = 'hit@5'" --json -
""",
)
@click.argument("query")
@report_options
@warehouse_option
def command(query: str, outputs: Outputs, warehouse: Path) -> None:
    """Ask the warehouse a question in DuckDB's SQL.

    Tables: runs, tasks, captures, attempts, events, sessions, scores. Views: arm_runs, arm_scores,
    trend, flips, noise, answer_costs.
    """
    import duckdb

    from coldrun.tasks.lib.errors import UsageError
    from coldrun.tasks.report.document import Line, table_of
    from coldrun.warehouse.reader import connect, select_rows

    try:
        rows = select_rows(connect(warehouse, leaves_out=True), query)
    except duckdb.Error as error:
        raise UsageError(f"the query cannot be answered: {error}") from None
    records = [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in rows
    ]
    values = json.loads(json.dumps({"rows": rows}, default=str))
    outputs.show([table_of(records) if records else Line("no rows")], values)
