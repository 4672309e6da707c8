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
""",
)
@click.argument("run", metavar="RUN")
@report_options
@warehouse_option
@catch_errors
def command(run: str, json_file: str | None, markdown_file: str | None, warehouse: Path) -> None:
    """Print the report of a run again, computed from its stored answers.

    RUN is an id, the start of one, or `last`. Nothing is executed; the exit code is the run's.
    """
    from cli.evaluating import Outputs, print_report_outputs
    from tasks.report.load import load_report

    built = load_report(warehouse, run)
    outputs = Outputs(json_file=json_file, markdown_file=markdown_file)
    print_report_outputs(built.report, outputs)
    sys.exit(built.report.exit_code)
