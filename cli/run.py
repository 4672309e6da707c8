"""`coldrun run CONFIG`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from coldrun.cli.options import Outputs, announce_clone, config_argument, full_option, run_options
from coldrun.tasks.lib.errors import UsageError


@click.command(
    "run",
    epilog="""\b
Examples:
  coldrun run configs/self.toml
  coldrun run configs/mytool.toml --commit v1.2.0 --json report.json
  coldrun run configs/mytool.toml --resume 20260714-093012
""",
)
@config_argument
@click.option("--commit", "revision", metavar="REV", help="Measure the product at this revision.")
@click.option("--resume", metavar="RUN", help="Continue a dead run (an id, its start, or `last`).")
@click.option("--reuse", is_flag=True, help="Replay matching captures of earlier runs; said so.")
@click.option("--trials", type=click.IntRange(min=1), help="Ask everything this many times.")
@click.option("--repo", metavar="PATH_OR_URL", help="Where the panel's repository lies.")
@full_option
@run_options
def command(
    config_path: Path,
    revision: str | None,
    resume: str | None,
    reuse: bool,
    trials: int | None,
    repo: str | None,
    is_full: bool,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Ask every arm every question of the frozen panel, cold, and judge the answers.

    Nothing is replayed unless you ask for it: --resume continues a dead run with its own answers,
    --reuse accepts matching answers of earlier runs, and the report's first line counts them.

    \b
    Exit codes: 0 measured, bars met · 1 a bar failed · 2 usage, configuration or lock ·
    3 measured nothing · 4 replayed or did not run · 5 invalid · 6 inconclusive · 130 interrupted
    """
    if resume is not None and (reuse or trials is not None):
        raise UsageError("--resume continues a run as it was; leave --reuse and --trials out")
    from coldrun.tasks.run.prepare import load_evaluation

    evaluation = load_evaluation(config_path, scratch=scratch, repo=repo)
    announce_clone(evaluation.config.panel.repo, scratch)
    # only now, so that a refused configuration is told at once
    from coldrun.cli.evaluating import evaluate_and_report
    from coldrun.tasks.run.run_lifecycle import RunRequest

    request = RunRequest(
        warehouse=warehouse,
        mode="resume" if resume is not None else "reuse" if reuse else "cold",
        resume=resume,
        trials=trials,
    )
    code = evaluate_and_report(
        evaluation, request, revision=revision, repo=repo, outputs=outputs, is_full=is_full
    )
    sys.exit(code)
