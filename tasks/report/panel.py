"""What freezing has to tell: drops, the answer distribution before sampling, the nulls."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from tasks.config import Config
from tasks.freeze.distribution import Distribution
from tasks.freeze.freeze import FrozenResult
from tasks.report.terminal import make_table

SHOWN = 72
"""Characters of an answer that are shown."""


def print_frozen(config: Config, result: FrozenResult, console: Console) -> None:
    """Print where the denominator comes from, then the distribution, then every null."""
    for line in frozen_lines(config, result):
        console.print(
            Text(line, style="yellow" if line.startswith("warning") else ""), soft_wrap=True
        )
    table = make_table(["null", "", f"{config.primary} before", "in the sample"])
    for null in result.nulls:
        table.add_row(null.name, "", f"{null.before:.3f}", f"{null.after:.3f}")
    console.print()
    console.print(table)


def frozen_lines(config: Config, result: FrozenResult) -> Iterator[str]:
    """The sentences of a freeze. With a split, figures are of the dev part alone."""
    dropped = sum(result.drops.values())
    drops = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in result.drops.items() if n)
    solvable = result.candidates - dropped
    yield (
        f"{result.candidates} candidates − {dropped} dropped"
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
        f"answers {when}: {spread.tasks} tasks, {spread.shapes} shapes, the commonest has "
        f"{spread.top_share:.1%}, {spread.effective_shapes:.1f} effective shapes"
    )
    if spread.names_gold_share is not None:
        yield f"  {spread.names_gold_share:.0%} of the queries name a gold file"
    yield "  commonest answers:"
    for answer in spread.commonest_answers:
        yield f"    {answer.count:5d}  {_shorten(' + '.join(answer.answer) or '(empty)')}"
    yield "  commonest gold items:"
    for item in spread.commonest_items:
        yield f"    {item.count:5d}  {_shorten(item.item)}"


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
