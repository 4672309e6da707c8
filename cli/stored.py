"""The commands that read what is stored: `report`, `runs`, `panels`, `show`, `why` and `sql`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from coldrun.cli.options import (
    Outputs,
    full_option,
    place_options,
    report_options,
    warehouse_option,
)

run_argument = click.argument("run", metavar="RUN")


@click.command(
    "report",
    epilog="""\b
Examples:
  coldrun report last
  coldrun report last --full
  coldrun report 20260714-0930 --markdown report.md
  coldrun report last --by names_gold
  coldrun report last --prices prices/2026-11-30.toml
""",
)
@run_argument
@click.option("--by", "stratum", metavar="STRATUM", help="Split by a stratum: names_gold, files, …")
@click.option(
    "--prices",
    "prices_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Compute costs with another snapshot of prices.",
)
@full_option
@report_options
@warehouse_option
def report(
    run: str,
    stratum: str | None,
    prices_file: Path | None,
    is_full: bool,
    outputs: Outputs,
    warehouse: Path,
) -> None:
    """Print the report of a run again, computed from its stored answers.

    RUN is an id, the start of one, or `last`. Nothing is executed; the exit code is the run's.
    The first screen has the answer; --full, --markdown and --json have everything.
    With --by, the primary measure in each part of a stratum is printed below, nulls included; the
    JSON has all strata. With --prices, what the arms used is priced again; the report says so.
    """
    from coldrun.cli.evaluating import print_report_outputs
    from coldrun.tasks.config import load_prices
    from coldrun.tasks.judge.load_run import load_report

    prices = None if prices_file is None else load_prices(prices_file)
    built = load_report(warehouse, run, prices=prices)
    print_report_outputs(built.report, outputs, is_full=is_full, stratum=stratum)
    sys.exit(built.report.exit_code)


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
def runs(name: str | None, limit: int, outputs: Outputs, warehouse: Path) -> None:
    """List the runs in the warehouse, newest first, and those that can be resumed."""
    from coldrun.tasks.report.warehouse_document import runs_document
    from coldrun.warehouse.reader import list_runs, list_unfinished

    rows = list_runs(warehouse, name=name, limit=limit)
    unfinished = list_unfinished(warehouse)
    values = {"runs": rows, "unfinished": unfinished}
    outputs.show(runs_document(rows, unfinished, warehouse), values)


@click.command(
    "panels",
    epilog="""\b
Examples:
  coldrun panels
  coldrun panels --name click --json -
""",
)
@click.option("--name", help="Only the panels of this evaluation.")
@report_options
@warehouse_option
def panels(name: str | None, outputs: Outputs, warehouse: Path) -> None:
    """Compare several panels: their newest scores, each beside what the panel was used for.

    A panel that a tool was developed on says less than one that was never looked at. What each was
    used for is declared in [panel] used_for, by date, and printed beside its scores.
    """
    from coldrun.tasks.judge.panel_list import list_panels
    from coldrun.tasks.report.warehouse_document import panels_document

    panels = list_panels(warehouse, name=name)
    values = {"panels": [asdict(panel) for panel in panels]}
    outputs.show(panels_document(panels, warehouse), values)


@click.command(
    "show",
    epilog="""\b
Examples:
  coldrun show last --task t1f5b8a9c
  coldrun show last --misses --arm tool
  coldrun show last --discrimination
""",
)
@run_argument
@click.option("--arm", metavar="NAME", help="Only the answers of this arm.")
@click.option("--task", "task_id", metavar="ID", help="Only this task (an id or its start).")
@click.option("--misses", is_flag=True, help="Only misses, counted by class first.")
@click.option("--discrimination", is_flag=True, help="Which tasks tell the arms apart, instead.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many answers to print; the JSON has all.",
)
@report_options
@warehouse_option
def show(
    run: str,
    arm: str | None,
    task_id: str | None,
    misses: bool,
    discrimination: bool,
    limit: int,
    outputs: Outputs,
    warehouse: Path,
) -> None:
    """Show the answers of a run: the query, the gold, what each arm said, and why it missed.

    RUN is an id, the start of one, or `last`. A + marks the right items of an answer. With
    --misses, misses are counted by class: abstained, gold below the cut by band of ranks, not
    retrieved, the tool's own failures.
    """
    from coldrun.tasks.judge.answer_rows import (
        count_arm_misses,
        discrimination_values,
        list_answers,
    )
    from coldrun.tasks.judge.load_run import load_record
    from coldrun.tasks.report.answer_document import (
        answer_blocks,
        answers_title,
        discrimination_lines,
        miss_lines,
    )
    from coldrun.tasks.report.document import Block, lines

    record = load_record(warehouse, run)
    if task_id is None:
        record = record.primary
    primary = record.manifest.config.primary
    rows = list_answers(record, arm=arm, task_id=task_id)
    document: list[Block] = [answers_title(record)]
    if discrimination:
        document += lines(discrimination_lines(rows, primary))
        values: dict[str, Any] = discrimination_values(rows)
    else:
        chosen = [row for row in rows if row.miss is not None] if misses else rows
        document += [*(miss_lines(rows, primary) if misses else ()), *answer_blocks(chosen, limit)]
        values = {
            "run_id": record.manifest.run_id,
            "primary": primary,
            "misses": count_arm_misses(rows),
            "answers": [asdict(row) for row in chosen],
        }
    outputs.show(document, values)


@click.command(
    "why",
    epilog="""\b
Examples:
  coldrun why last t1f5b8a9c0d2e4f66 bm25
""",
)
@run_argument
@click.argument("task_id", metavar="TASK")
@click.argument("arm", metavar="ARM")
@click.option(
    "--trial",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Which repeat of the question, counted from 0.",
)
@report_options
@place_options
def why(
    run: str,
    task_id: str,
    arm: str,
    trial: int,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Explain an answer: executed or replayed, and which part of its key differs from others'.

    RUN is an id, the start of one, or `last`; `coldrun show RUN` lists its tasks and arms. Compares
    the key of this answer with that of the same question in every other run, and names
    the components that differ: why an answer was replayed, or why it could not be.
    """
    del scratch
    from coldrun.tasks.report.answer_document import why_document
    from coldrun.tasks.run.key_differences import explain_answer

    found = explain_answer(warehouse, run, task_id=task_id, arm=arm, trial=trial)
    outputs.show(why_document(found), asdict(found))


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
def sql(query: str, outputs: Outputs, warehouse: Path) -> None:
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
