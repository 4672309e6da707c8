"""`coldrun compare RUN RUN`."""

from __future__ import annotations

from pathlib import Path

import click

from coldrun.cli.options import Outputs, report_options, warehouse_option


@click.command(
    "compare",
    epilog="""\b
Examples:
  coldrun compare 20260714-0930 last
  coldrun compare 20260713-02 20260714-02 --markdown change.md
""",
)
@click.argument("before", metavar="RUN")
@click.argument("after", metavar="RUN")
@report_options
@warehouse_option
def command(before: str, after: str, outputs: Outputs, warehouse: Path) -> None:
    """Compare two runs of one panel, paired by task: what was gained, what was lost, by how much.

    Each RUN is an id, the start of one, or `last`. Both must have asked the same panel with the
    same measures. Nothing is executed; the exit code is 0 whatever the outcome.
    """
    from coldrun.tasks.history.comparison import compare_runs, comparison_document
    from coldrun.tasks.history.outcomes import read_floors, read_key_differences, read_run

    first, second = read_run(warehouse, before), read_run(warehouse, after)
    primary = first.measures[0]
    floors = read_floors(warehouse, first, measure=primary)
    later = read_floors(warehouse, second, measure=primary)
    floors |= {arm: floor for arm, floor in later.items() if floor is not None}
    differences = read_key_differences(warehouse, first.run_id, second.run_id)
    found = compare_runs(first, second, floors=floors, key_differences=differences)
    outputs.show(comparison_document(found), found.to_json())
