"""`coldrun panels`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from coldrun.cli.options import Outputs, report_options, warehouse_option


@click.command(
    "panels",
    epilog="""\b
Examples:
  coldrun panels
  coldrun panels --name click --json -
""",
)
@click.option("--name", help="Only the panels of this evaluation.")
@report_options
@warehouse_option
def command(name: str | None, outputs: Outputs, warehouse: Path) -> None:
    """Compare several panels: their newest scores, each beside what the panel was used for.

    A panel that a tool was developed on says less than one that was never looked at. What each was
    used for is declared in [panel] used_for, by date, and printed beside its scores.
    """
    from coldrun.tasks.judge.warehouse_list import list_panels
    from coldrun.tasks.report.warehouse_document import panels_document

    panels = list_panels(warehouse, name=name)
    values = {"panels": [asdict(panel) for panel in panels]}
    outputs.show(panels_document(panels, warehouse), values)
