"""`coldrun decompose CONFIG --from REV --to REV`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from coldrun.cli.options import Outputs, chart_option, config_argument, run_options


@click.command(
    "decompose",
    epilog="""\b
Examples:
  coldrun decompose configs/mytool.toml --from v1.0 --to HEAD
  coldrun decompose configs/mytool.toml --from v1.0 --to HEAD --all --svg steps.svg
""",
)
@config_argument
@click.option("--from", "from_revision", required=True, metavar="REV", help="The earlier end.")
@click.option("--to", "to_revision", required=True, metavar="REV", help="The later end.")
@click.option("--arm", "arm_name", metavar="NAME", help="Whose change (default: first candidate).")
@click.option("--all", "is_whole", is_flag=True, help="Measure every commit in between.")
@click.option("--reuse", is_flag=True, help="Replay matching answers; such steps are unverified.")
@click.option("--trials", type=click.IntRange(min=1), help="Ask everything this many times.")
@click.option("--repo", metavar="PATH_OR_URL", help="Where the panel's repository lies.")
@chart_option
@run_options
def command(
    config_path: Path,
    from_revision: str,
    to_revision: str,
    arm_name: str | None,
    is_whole: bool,
    reuse: bool,
    trials: int | None,
    repo: str | None,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Attribute a change of the score to the commits between two points.

    Measures both ends cold, then splits wherever the outcomes of single tasks differ, until every
    change lies between neighbours. Commits between two points that look alike stay unmeasured: a
    change that was made and reverted there does not show, and the report names the gap; --all
    measures everything. Asking for the same again after a crash continues it.

    \b
    Exit codes: 0 whatever was found · 2 usage, configuration or lock · 5 an end could not be
    measured · 130 interrupted
    """
    from coldrun.cli.history_commands import conduct_and_report
    from coldrun.tasks.history.history_requests import request_decomposition
    from coldrun.tasks.run.prepare import load_evaluation

    request = request_decomposition(
        load_evaluation(config_path, scratch=scratch, repo=repo),
        from_revision,
        to_revision,
        warehouse=warehouse,
        arm=arm_name,
        is_whole=is_whole,
        mode="reuse" if reuse else "cold",
        trials=trials,
    )

    def call_flow() -> None:
        from coldrun.flows.history import run_history

        run_history(request)

    sys.exit(conduct_and_report(call_flow, request, repo=repo, outputs=outputs))
