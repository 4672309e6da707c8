"""`coldrun backfill CONFIG --commits ...`."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coldrun.cli.options import Outputs, chart_option, config_argument, run_options

if TYPE_CHECKING:
    from coldrun.tasks.history.history_requests import HistoryRequest


@click.command(
    "backfill",
    epilog="""\b
Examples:
  coldrun backfill configs/mytool.toml --commits v1.0..v1.4 --dry-run
  coldrun backfill configs/mytool.toml --commits 'v2.*' --svg history.svg
  coldrun backfill configs/mytool.toml --commits NEW
""",
)
@config_argument
@click.option(
    "--commits",
    required=True,
    metavar="WHICH",
    help="A..B (both included), a file with a revision a line, a pattern of tags, revisions "
    "separated by commas, or NEW: those after the newest measured one.",
)
@click.option(
    "--every", type=click.IntRange(min=1), default=1, help="Keep every Nth commit, and the newest."
)
@click.option(
    "--max", "at_most", type=click.IntRange(min=1), help="Keep at most N commits, spread evenly."
)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    callback=lambda _, __, value: value and value.date(),
    help="Leave out what was committed before.",
)
@click.option(
    "--first-parent/--all",
    "is_first_parent",
    default=True,
    help="Of a range, the main line only (default) or every commit.",
)
@click.option("--arm", "arm_name", metavar="NAME", help="The arm whose steps are shown.")
@click.option("--cold", is_flag=True, help="Execute candidates too where matching answers exist.")
@click.option("--dry-run", is_flag=True, help="Show the plan and the estimated time, run nothing.")
@click.option("--repo", metavar="PATH_OR_URL", help="Where the panel's repository lies.")
@chart_option
@run_options
def command(
    config_path: Path,
    commits: str,
    every: int,
    at_most: int | None,
    since: dt.date | None,
    is_first_parent: bool,
    arm_name: str | None,
    cold: bool,
    dry_run: bool,
    repo: str | None,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Evaluate many commits of the product, each as a run of its own.

    Commits with one tree are measured once. A commit that cannot be set up is recorded and the
    rest goes on. The oldest and the newest come first, so that a machine that drifts is not read
    as a trend. Controls are executed at every point, and the first point once more at the end;
    candidates' matching answers of earlier runs are replayed and labelled (not with --cold).

    Asking for the same again after an interruption continues it.

    \b
    Exit codes: 0 whatever was measured · 2 usage, configuration or lock · 5 no point could be
    measured · 130 interrupted
    """
    from coldrun.cli.history_commands import conduct_and_report
    from coldrun.tasks.history.commits import read_list
    from coldrun.tasks.history.history_requests import request_backfill
    from coldrun.tasks.run.prepare import load_evaluation

    evaluation = load_evaluation(config_path, scratch=scratch, repo=repo)
    text = read_list(commits)
    options: dict[str, Any] = {
        "every": every,
        "at_most": at_most,
        "since": since,
        "is_first_parent": is_first_parent,
        "arm": arm_name,
        "mode": "cold" if cold else "reuse",
    }
    request = request_backfill(evaluation, text, warehouse=warehouse, **options)
    if request is None:
        outputs.people.print("nothing new: the newest commit was measured; nothing is executed")
        return
    if dry_run:
        _print_plan(request, outputs)
        return

    def call_flow() -> None:
        from coldrun.flows.history import backfill

        backfill(evaluation.frozen.name, text, **options)

    sys.exit(conduct_and_report(call_flow, request, repo=repo, outputs=outputs))


def _print_plan(request: HistoryRequest, outputs: Outputs) -> None:
    from coldrun.tasks.history.history_document import plan_document, plan_values
    from coldrun.tasks.history.history_lifecycle import estimate_history
    from coldrun.tasks.history.history_plan import build_nodes

    nodes = build_nodes(request.commits)
    estimate = estimate_history(request.evaluation, request.warehouse, nodes)
    outputs.show(plan_document(nodes, estimate), plan_values(nodes, estimate))
