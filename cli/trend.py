"""`coldrun trend CONFIG`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldrun.cli.options import (
    Outputs,
    chart_option,
    config_argument,
    place_options,
    report_options,
    write_output,
)

if TYPE_CHECKING:
    from coldrun.tasks.lib.git.repository import Repository
    from coldrun.tasks.run.prepare import Evaluation


@click.command(
    "trend",
    epilog="""\b
Examples:
  coldrun trend configs/mytool.toml
  coldrun trend configs/mytool.toml --measure mrr@8 --svg trend.svg
""",
)
@config_argument
@click.option("--measure", metavar="NAME", help="Default: the primary measure.")
@click.option("--arm", "arm_name", metavar="NAME", help="Default: the first candidate.")
@chart_option
@report_options
@place_options
def command(
    config_path: Path,
    measure: str | None,
    arm_name: str | None,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Show a measure over every measured commit, with intervals, bars and the null line.

    A step is marked only where a test paired by task supports it. Nothing is executed.
    """
    from coldrun.tasks.history.history_requests import choose_arm
    from coldrun.tasks.history.score_trend import build_trend, trend_document
    from coldrun.tasks.run.prepare import load_evaluation

    evaluation = load_evaluation(config_path, scratch=scratch)
    trend = build_trend(
        evaluation,
        warehouse,
        arm=choose_arm(evaluation.config, arm_name),
        measure=measure or evaluation.config.primary,
        repository=_open_product(evaluation),
    )
    outputs.show(trend_document(trend), trend.to_json())
    if outputs.svg_file is not None:
        from coldrun.tasks.history.chart import trend_chart

        write_output(outputs.svg_file, trend_chart(trend))


def _open_product(evaluation: Evaluation) -> Repository | None:
    """The product's repository; None when it cannot be read, since nothing is executed here."""
    from coldrun.tasks.history.commits import open_product
    from coldrun.tasks.lib.errors import RepositoryError

    try:
        return open_product(evaluation)
    except RepositoryError:
        return None
