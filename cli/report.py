"""`coldrun report RUN`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from coldrun.cli.options import Outputs, full_option, report_options, warehouse_option


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
@click.argument("run", metavar="RUN")
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
def command(
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
