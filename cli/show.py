"""`coldrun show RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coldrun.cli.options import Outputs, report_options, warehouse_option

LIMIT = 20


@click.command(
    "show",
    epilog="""\b
Examples:
  coldrun show last --task t1f5b8a9c
  coldrun show last --misses --arm tool
  coldrun show last --discrimination
""",
)
@click.argument("run", metavar="RUN")
@click.option("--arm", metavar="NAME", help="Only the answers of this arm.")
@click.option("--task", "task_id", metavar="ID", help="Only this task (an id or its start).")
@click.option("--misses", is_flag=True, help="Only misses, counted by class first.")
@click.option("--discrimination", is_flag=True, help="Which tasks tell the arms apart, instead.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    help="How many answers to print; the JSON has all.",
)
@report_options
@warehouse_option
def command(
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
    from coldrun.tasks.judge.answer_rows import count_arm_misses, list_answers
    from coldrun.tasks.judge.load_run import load_record
    from coldrun.tasks.judge.pilot import discrimination_lines, discrimination_values
    from coldrun.tasks.report.answer_document import answer_blocks, answers_title, miss_lines
    from coldrun.tasks.report.document import Block, lines

    record = load_record(warehouse, run)
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
            "answers": [row.to_values() for row in chosen],
        }
    outputs.show(document, values)
