"""What mining and freezing tell: drops, the answer distribution before sampling, the nulls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from coldrun.tasks.config import Config
from coldrun.tasks.freeze.distribution import Distribution
from coldrun.tasks.freeze.freeze_panel import FrozenResult
from coldrun.tasks.lib.plain_text import counted, cut_text
from coldrun.tasks.lib.records import Dropped
from coldrun.tasks.report.document import Block, Heading, Line, lines, table_of, warning_lines

SHOWN = 72
"""Characters of an answer that are shown."""


def frozen_document(config: Config, result: FrozenResult) -> Iterator[Block]:
    """Where the denominator comes from, then the distribution, then every null.

    With a split, the figures are of the dev part alone.
    """
    yield Heading("Panel", is_page_only=True)
    dropped = sum(result.drops.values())
    drops = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in result.drops.items() if n)
    yield Line(
        f"{counted(result.candidates, 'candidate')} − {dropped} dropped"
        f"{f' ({drops})' if drops else ''} = {result.candidates - dropped} solvable"
    )
    if result.sealed:
        yield Line(
            f"{len(result.sealed)} sealed, of which an opening asks "
            f"{result.lock['sealed']['count']}; {result.dev_tasks} dev; all that follows is dev "
            "alone"
        )
    yield from _distribution_lines("before sampling", result.before)
    for name, tasks in result.parts.items():
        if name != "population":
            rule = config.sample_rule if name == "balanced" else f"{name} order"
            what = "primary" if name == config.primary_part else "beside it"
            yield Line(
                f"{name} part ({what}): {len(tasks)} of {result.dev_tasks} by {rule}, "
                f"seed {config.sample.seed}"
            )
    if "population" in result.parts and len(result.parts) > 1:
        yield Line(f"built-in arms are asked all {result.dev_tasks}")
    if len(result.sampled) < result.dev_tasks:
        yield from _distribution_lines(f"in the {config.primary_part} part", result.after)
    yield from warning_lines(result.warnings)
    yield Line(f"panel {result.lock['panel']['digest']}")
    yield table_of(
        (
            {
                "null": null.name,
                f"{config.primary} before sampling": f"{null.before:.3f}",
                **{f"{part} part": f"{mean:.3f}" for part, mean in null.after.items()},
            }
            for null in result.nulls
        ),
        text_columns=1,
    )


def drop_lines(dropped: Sequence[Dropped]) -> Iterator[Line]:
    """Each candidate that left: why, which commit, and how its message begins."""
    for each in dropped:
        reason = each.reason.replace("_", " ")
        yield Line(f"{reason:18} {each.commit[:12]}  {each.subject}", is_whole=True)


def _distribution_lines(when: str, spread: Distribution) -> Iterator[Line]:
    yield Line(
        f"answers {when}: {counted(spread.tasks, 'task')}, {counted(spread.shapes, 'shape')}, "
        f"the commonest has {spread.top_share:.1%}, {spread.effective_shapes:.1f} effective shapes"
    )
    if spread.names_gold_share is not None:
        yield Line(f"{spread.names_gold_share:.0%} of the queries name a gold file", depth=1)
    if spread.docs_only_share is not None and spread.tests_only_share is not None:
        yield Line(
            f"{spread.docs_only_share:.0%} of the answers are documentation only, "
            f"{spread.tests_only_share:.0%} tests only",
            depth=1,
        )
    answers = [(answer.count, " + ".join(answer.answer)) for answer in spread.commonest_answers]
    items = [(item.count, item.item) for item in spread.commonest_items]
    for what, found in (("answers", answers), ("gold items", items)):
        yield Line(f"commonest {what}:", depth=1)
        shown = (f"{count:5d}  {cut_text(text or '(empty)', SHOWN)}" for count, text in found)
        yield from lines(shown, depth=2)


def frozen_values(config: Config, result: FrozenResult) -> dict[str, Any]:
    """The figures of the document as JSON values."""
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
        "parts": {name: len(tasks) for name, tasks in result.parts.items()},
        "nulls": {
            null.name: {
                "before": null.before,
                "after": null.after[config.primary_part],
                "parts": dict(null.after),
            }
            for null in result.nulls
        },
        "warnings": list(result.warnings),
    }
