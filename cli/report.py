"""`coldrun report RUN`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.options import catch_errors, report_options, warehouse_option


@click.command(
    "report",
    epilog="""\b
Examples:
  coldrun report last
  coldrun report 20260714-0930 --markdown report.md
  coldrun report last --by names_gold
""",
)
@click.argument("run", metavar="RUN")
@click.option("--by", "stratum", metavar="STRATUM", help="Split by a stratum: names_gold, files, …")
@report_options
@warehouse_option
@catch_errors
def command(
    run: str,
    stratum: str | None,
    json_file: str | None,
    markdown_file: str | None,
    warehouse: Path,
) -> None:
    """Print the report of a run again, computed from its stored answers.

    RUN is an id, the start of one, or `last`. Nothing is executed; the exit code is the run's.
    With --by, the primary measure in each part of a stratum is printed below, nulls included; the
    JSON has all strata.
    """
    from cli.evaluating import Outputs, print_report_outputs
    from tasks.report.load import load_report

    built = load_report(warehouse, run)
    outputs = Outputs(json_file=json_file, markdown_file=markdown_file)
    print_report_outputs(built.report, outputs, stratum=stratum)
    sys.exit(built.report.exit_code)
