"""`coldrun why RUN TASK ARM`."""

from __future__ import annotations

from pathlib import Path

import click

from cli.options import catch_errors, scratch_option, warehouse_option


@click.command(
    "why",
    epilog="""\b
Examples:
  coldrun why last t1f5b8a9c0d2e4f66 bm25
""",
)
@click.argument("run", metavar="RUN")
@click.argument("task_id", metavar="TASK")
@click.argument("arm", metavar="ARM")
@click.option("--trial", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "json_file", metavar="FILE", help="Write as JSON; - for stdout.")
@warehouse_option
@scratch_option
@catch_errors
def command(
    run: str,
    task_id: str,
    arm: str,
    trial: int,
    json_file: str | None,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Explain an answer: executed or replayed, and which part of its key differs from others'.

    Compares the key of this answer with that of the same question in every other run, and names
    the components that differ: why an answer was replayed, or why it could not be.
    """
    del scratch
    import json

    from cli.options import people_console, write_json
    from tasks.report.why import explain_answer, why_lines

    found = explain_answer(warehouse, run, task_id=task_id, arm=arm, trial=trial)
    if json_file is not None:
        write_json(json_file, json.dumps(found.to_values(), indent=1))
    if json_file != "-":
        console = people_console()
        for line in why_lines(found):
            console.print(line, soft_wrap=True, markup=False)
