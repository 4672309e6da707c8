"""What freezing has to tell: drops, the answer distribution before sampling, the nulls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from coldrun.tasks.config import Config
from coldrun.tasks.freeze.distribution import Distribution
from coldrun.tasks.freeze.freeze_panel import FrozenResult
from coldrun.tasks.lib.plain_text import counted, cut_text
from coldrun.tasks.report.markdown import outline, table_lines
from coldrun.tasks.report.tables import print_table

SHOWN = 72
"""Characters of an answer that are shown."""


def print_frozen(config: Config, result: FrozenResult, console: Console) -> None:
    """Print where the denominator comes from, then the distribution, then every null."""
    for line in frozen_lines(config, result):
        console.print(
            Text(line, style="yellow" if line.startswith("warning") else ""), soft_wrap=True
        )
    console.print()
    print_table(console, _null_headers(config), _null_cells(result), text_columns=1)


def frozen_markdown(config: Config, result: FrozenResult) -> str:
    """The same as Markdown."""
    lines = ["# Panel", "", *outline(frozen_lines(config, result)), ""]
    lines += table_lines(_null_headers(config), _null_cells(result), text_columns=1)
    return "\n".join(lines)


def frozen_values(config: Config, result: FrozenResult) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "schema": 1,
        "panel": result.lock["panel"]["digest"],
        "candidates": result.candidates,
        "drops": dict(result.drops),
        "sealed": len(result.sealed),
        "dev": result.dev_tasks,
        "sampled": len(result.sampled),
        "primary": config.primary,
        "before": asdict(result.before),
        "after": asdict(result.after),
        "nulls": {null.name: {"before": null.before, "after": null.after} for null in result.nulls},
        "warnings": list(result.warnings),
    }


def _null_headers(config: Config) -> list[str]:
    return ["null", f"{config.primary} before sampling", "in the sample"]


def _null_cells(result: FrozenResult) -> list[list[str]]:
    return [[null.name, f"{null.before:.3f}", f"{null.after:.3f}"] for null in result.nulls]


def frozen_lines(config: Config, result: FrozenResult) -> Iterator[str]:
    """The sentences of a freeze. With a split, figures are of the dev part alone."""
    dropped = sum(result.drops.values())
    drops = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in result.drops.items() if n)
    solvable = result.candidates - dropped
    yield (
        f"{counted(result.candidates, 'candidate')} − {dropped} dropped"
        f"{f' ({drops})' if drops else ''} = {solvable} solvable"
    )
    if result.sealed:
        asked = result.lock["sealed"]["count"]
        yield (
            f"{len(result.sealed)} sealed, of which an opening asks {asked}; {result.dev_tasks} "
            "dev; all that follows is dev alone"
        )
    yield from _distribution_lines("before sampling", result.before)
    yield (
        f"sample: {len(result.sampled)} of {result.dev_tasks} by {config.sample_rule}, "
        f"seed {config.sample.seed}"
    )
    if len(result.sampled) < result.dev_tasks:
        yield from _distribution_lines("in the sample", result.after)
    yield from (f"warning: {warning}" for warning in result.warnings)
    yield f"panel {result.lock['panel']['digest']}"


def _distribution_lines(when: str, spread: Distribution) -> Iterator[str]:
    yield (
        f"answers {when}: {counted(spread.tasks, 'task')}, {counted(spread.shapes, 'shape')}, "
        f"the commonest has {spread.top_share:.1%}, {spread.effective_shapes:.1f} effective shapes"
    )
    if spread.names_gold_share is not None:
        yield f"  {spread.names_gold_share:.0%} of the queries name a gold file"
    yield "  commonest answers:"
    for answer in spread.commonest_answers:
        yield f"    {answer.count:5d}  {cut_text(' + '.join(answer.answer) or '(empty)', SHOWN)}"
    yield "  commonest gold items:"
    for item in spread.commonest_items:
        yield f"    {item.count:5d}  {cut_text(item.item, SHOWN)}"
