"""`coldrun show RUN`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.options import catch_errors, warehouse_option

if TYPE_CHECKING:
    from rich.console import Console

    from tasks.report.answers import AnswerRow
    from tasks.report.record import RunRecord

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
@click.option("--json", "json_file", metavar="FILE", help="Write as JSON; - for stdout.")
@warehouse_option
@catch_errors
def command(
    run: str,
    arm: str | None,
    task_id: str | None,
    misses: bool,
    discrimination: bool,
    limit: int,
    json_file: str | None,
    warehouse: Path,
) -> None:
    """Show the answers of a run: the query, the gold, what each arm said, and why it missed.

    RUN is an id, the start of one, or `last`. A + marks the right items of an answer. With
    --misses, misses are counted by class: abstained, gold below the cut by band of ranks, not
    retrieved, the tool's own failures.
    """
    from cli.options import people_console, write_json
    from tasks.report.answers import count_arm_misses, list_answers
    from tasks.report.load import load_record
    from tasks.run.answers import read_answer

    record = load_record(warehouse, run)
    console = people_console(stderr=json_file == "-")
    rows = list_answers(record, read_answer, arm=arm, task_id=task_id)
    if discrimination:
        _show_discrimination(record, rows, console, json_file)
        return
    counts = count_arm_misses(rows)
    chosen = [row for row in rows if row.miss is not None] if misses else rows
    if json_file is not None:
        values = {
            "run_id": record.manifest.run_id,
            "primary": record.manifest.config.primary,
            "misses": counts,
            "answers": [row.to_values() for row in chosen],
        }
        write_json(json_file, json.dumps(values, ensure_ascii=False, indent=1))
    if json_file == "-":
        return
    if misses:
        _print_counts(counts, rows, record, console)
    for row in chosen[:limit]:
        _print_answer(row, console)
    if len(chosen) > limit:
        console.print(
            f"… {len(chosen) - limit} more; --limit {len(chosen)} prints them", soft_wrap=True
        )


def _print_answer(row: AnswerRow, console: Console) -> None:
    from tasks.report.answers import answer_lines

    for line in answer_lines(row):
        console.print(line, soft_wrap=True, markup=False)


def _print_counts(
    counts: dict[str, dict[str, int]],
    rows: list[AnswerRow],
    record: RunRecord,
    console: Console,
) -> None:
    from tasks.analyse.misses import NAMES_GOLD
    from tasks.report.answers import miss_words

    for arm, found in counts.items():
        asked = sum(row.arm == arm for row in rows)
        missed = sum(number for label, number in found.items() if label != NAMES_GOLD)
        console.print(
            f"{arm}: {missed} of {asked} answers missed at {record.manifest.config.primary}",
            soft_wrap=True,
            markup=False,
        )
        for label, number in found.items():
            console.print(f"  {number:5d}  {miss_words(label)}", soft_wrap=True, markup=False)
    console.print()


def _show_discrimination(
    record: RunRecord, rows: list[AnswerRow], console: Console, json_file: str | None
) -> None:
    from cli.options import write_json
    from tasks.report.discrimination import discrimination_lines, discrimination_values

    if json_file is not None:
        values: dict[str, Any] = discrimination_values(rows)
        write_json(json_file, json.dumps(values, ensure_ascii=False, indent=1))
    if json_file != "-":
        for line in discrimination_lines(rows, record.manifest.config.primary):
            console.print(line, soft_wrap=True, markup=False)
