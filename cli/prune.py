"""`coldrun prune`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from coldrun.cli.options import Outputs, place_options, report_options


@click.command(
    "prune",
    epilog="""\b
Examples:
  coldrun prune --dry-run
  coldrun prune --older-than 7
""",
)
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    default=30,
    show_default=True,
    metavar="DAYS",
    help="Remove what was not used for this long; 0 removes all that is not in use.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@report_options
@place_options
def command(
    days: float,
    dry_run: bool,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Free scratch space: clones, corpora, checkouts, token counts, what dead runs left.

    All of it is made again when it is needed. Measured data is in the warehouse, which is never
    touched. Refuses while a run is being written.
    """
    from coldrun.tasks.report.document import lines
    from coldrun.tasks.run.scratch_usage import KINDS, find_prunable, hold_unused, prune

    with nullcontext() if dry_run else hold_unused(warehouse, scratch):
        found = find_prunable(scratch, unused_for_days=days)
        gone = found if dry_run else prune(scratch, found, unused_for_days=days)
    freed = sum(entry.size_bytes for entry in gone)
    sums = []
    for kind, meaning in KINDS.items():
        mine = [entry for entry in gone if entry.kind == kind]
        if mine:
            size = _size_words(sum(entry.size_bytes for entry in mine))
            sums.append(f"{size:>9}  {len(mine):4d} {meaning}")
    what = "would be freed" if dry_run else "freed"
    sums.append(f"{_size_words(freed):>9}  {what} in {scratch}")
    left = len(found) - len(gone)
    if left:
        sums.append(f"{left} are in use and were left")
    values = {
        "is_dry_run": dry_run,
        "freed_bytes": freed,
        "removed": [entry.to_values() for entry in gone],
    }
    outputs.show(lines(sums), values)


def _size_words(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
