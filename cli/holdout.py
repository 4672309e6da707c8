"""`coldrun holdout`: open the sealed part, or list its openings."""

from __future__ import annotations

import datetime as dt
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldrun.cli.options import Outputs, config_argument, report_options, run_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from coldrun.tasks.holdout.opening import OpenedPart
    from coldrun.tasks.judge.build_report import BuiltReport
    from coldrun.tasks.run.prepare import Evaluation
    from coldrun.tasks.run.run_lifecycle import RunRequest, StartedRun


@click.group(
    "holdout",
    epilog="How often, when and for what it may be opened is declared in [holdout] of CONFIG.",
)
def command() -> None:
    """Open the sealed part of a panel, or list its openings.

    \b
      coldrun holdout open configs/mytool.toml --reason "release 2.0"
      coldrun holdout log configs/mytool.toml
    """


@command.command(
    "open",
    epilog="""\b
Examples:
  coldrun holdout open configs/mytool.toml --reason "release 2.0"
  coldrun holdout open configs/mytool.toml --reason "second candidate" --override
""",
)
@config_argument
@click.option("--reason", required=True, help="Why it is opened; written down.")
@click.option("--event", help="The event that allows it, as [holdout] `when` declares it.")
@click.option("--override", is_flag=True, help="Open it outside of what was declared; recorded.")
@click.option(
    "--task-level",
    is_flag=True,
    help="Return every answer. The sealed part is dev from then on, for good.",
)
@click.option("--commit", "revision", metavar="REV", help="Measure the product at this revision.")
@click.option("--repo", metavar="PATH_OR_URL", help="Where the panel's repository lies.")
@run_options
def open_(
    config_path: Path,
    reason: str,
    event: str | None,
    override: bool,
    task_level: bool,
    revision: str | None,
    repo: str | None,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Run the declared arms on the sealed tasks, and tell the declared aggregates alone.

    The tasks are checked against the lock, asked in a private warehouse that is removed
    afterwards, and the opening is written to NAME.holdout.jsonl before anything is told. An
    opening outside of [holdout] is refused without --override. Exit codes are those of `run`.
    """
    from coldrun.tasks.freeze.lock import EvaluationFiles
    from coldrun.tasks.holdout.ledger import hold_ledger
    from coldrun.tasks.holdout.opening import OpeningRequest, open_sealed, prepare_opening
    from coldrun.tasks.holdout.private import private_warehouse
    from coldrun.tasks.run.run_lifecycle import RunRequest, check_request

    request = OpeningRequest(
        reason=reason,
        event=event,
        is_override=override,
        is_task_level=task_level,
        warehouse=warehouse,
    )
    say = partial(outputs.people.print, soft_wrap=True)
    with hold_ledger(EvaluationFiles(config_path), scratch) as killed:
        if killed is not None:
            line = f"the ledger has it as line {killed.number}"
            say(f"the opening of {killed.at} was killed; {line}", style="yellow")
        prepared = prepare_opening(config_path, request, scratch=scratch, repo=repo)
        os.environ.pop("COLDRUN_HOLDOUT_KEY", None)  # no arm, set-up or server has any use for it
        with private_warehouse(scratch) as trial:
            check_request(prepared.evaluation, RunRequest(warehouse=trial), revision=revision)
        for problem in prepared.outside:
            say(f"override: {problem}", style="yellow")
        if prepared.part.note is not None:
            say(f"mined again and checked against the lock: {prepared.part.note}")
        evaluate = partial(_evaluate_quietly, revision=revision, outputs=outputs)
        opened = open_sealed(prepared, evaluate)
    _tell(opened, outputs)
    sys.exit(opened.exit_code)


@command.command("log", epilog="Example: coldrun holdout log configs/mytool.toml")
@config_argument
@click.option(
    "--adopt",
    is_flag=True,
    help="Let the lock know of openings that only the ledger has, after a crash.",
)
@report_options
def log(config_path: Path, adopt: bool, outputs: Outputs) -> None:
    """List the openings of the sealed part, and check the ledger against the lock.

    A line that was edited, moved or cut off is an error (exit 5).
    """
    from coldrun.tasks.config import HoldoutConfig, load_config
    from coldrun.tasks.freeze.lock import EvaluationFiles, read_lock
    from coldrun.tasks.holdout.ledger import adopt_openings, read_ledger
    from coldrun.tasks.holdout.opening_report import log_document, opening_values
    from coldrun.tasks.holdout.openings import count_openings, is_demoted
    from coldrun.tasks.lib.plain_text import counted, noun

    files = EvaluationFiles(config_path)
    allowed = (load_config(config_path).holdout or HoldoutConfig()).openings
    if adopt:
        for opening in adopt_openings(files):
            outputs.people.print(f"the lock knows of line {opening.number} now", soft_wrap=True)
    lock = read_lock(files)
    openings = read_ledger(files, lock)
    sealed = lock.get("sealed")
    what = counted(sealed["count"], "sealed task") if sealed else "nothing is sealed"
    if is_demoted(lock):
        what += ", dev since they were read task by task"
    summary = (
        f"{files.config}: {what}; opened {count_openings(openings)} of "
        f"{counted(allowed, 'declared time')}; "
        f"the ledger's {counted(len(openings), 'line')} {noun(len(openings), 'is', 'are')} whole"
    )
    values = [opening_values(found, openings, allowed=allowed) for found in openings]
    outputs.show(log_document(summary, openings, allowed=allowed), {"openings": values})


def _evaluate_quietly(
    evaluation: Evaluation,
    asked: RunRequest,
    guard: Callable[[StartedRun], None],
    *,
    revision: str | None,
    outputs: Outputs,
) -> BuiltReport:
    """Run the sealed part, and print nothing of it."""
    from coldrun.cli.evaluating import conduct, lost_run
    from coldrun.tasks.run.manifest import new_run_id

    run_id = new_run_id(dt.datetime.now(dt.UTC))

    def start() -> StartedRun:
        from coldrun.tasks.run.prepare import prepare_evaluation_point
        from coldrun.tasks.run.run_lifecycle import start_run

        point = prepare_evaluation_point(evaluation, revision)
        started = start_run(evaluation, replace(asked, run_id=run_id), point=point)
        guard(started)
        return started

    def orchestrated() -> None:
        from coldrun.flows.evaluate import answer
        from coldrun.tasks.lib.served import serving
        from coldrun.tasks.run.live_run import keep_live

        with serving({}, warehouse=asked.warehouse, scratch=evaluation.scratch):
            keep_live(start())
            answer(run_id)

    def here() -> None:
        from coldrun.tasks.judge.land_judgement import answer_here

        answer_here(start())

    built: BuiltReport = conduct(
        orchestrated,
        here,
        awaits=run_id,
        outputs=outputs,
        lost=lambda watch: lost_run(watch, evaluation.config_path),
    )
    return built


def _tell(opened: OpenedPart, outputs: Outputs) -> None:
    from coldrun.tasks.holdout.opening_report import opening_document, opening_values
    from coldrun.tasks.report.document import lines

    opening, openings, allowed = opened.opening, opened.openings, opened.allowed
    rows = (
        f"{row['task_id']} · {row['arm']}: {row['miss'] or 'hit'} · {row['query']}"
        for row in opened.rows
    )
    values = {**opening_values(opening, openings, allowed=allowed), "rows": list(opened.rows)}
    outputs.show([*opening_document(opening, openings, allowed=allowed), *lines(rows)], values)
