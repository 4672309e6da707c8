"""`coldrun why RUN TASK ARM`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from coldrun.cli.options import Outputs, place_options, report_options


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
@click.option(
    "--trial",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Which repeat of the question, counted from 0.",
)
@report_options
@place_options
def command(
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
