"""precision and precision@k: the share of what was answered that is gold.

precision@k divides by k even when fewer items came back (trec_eval, ir_measures and ranx do so).
precision without a cut-off divides by the number of distinct items answered. Both empty scores 1,
exactly one empty 0.

Source: van Rijsbergen 1979; the rule for empty sets is that of SQuAD 2.0 (Rajpurkar et al. 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coldrun.tasks.stats.measures.definition import (
    RANKING,
    SET,
    Definition,
    RandomDraw,
    cut_items,
    score_empties,
)

if TYPE_CHECKING:
    from coldrun.tasks.lib.arrays import FloatArray
    from coldrun.tasks.stats.gold_table import GoldTable


def score_precision(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float:
    """Score the gold items found, divided by `cutoff`, or by the answer's size without one."""
    if cutoff is not None:
        return sum(item in gold for item in cut_items(items, cutoff)) / cutoff
    answered = set(items)
    if (empty := score_empties(answered, gold)) is not None:
        return empty
    return len(answered & gold.keys()) / len(answered)


def _expect_random(draw: RandomDraw) -> float:
    if draw.cutoff is not None:
        return draw.found / draw.cutoff
    if (empty := score_empties(range(draw.drawn), draw.gold)) is not None:
        return empty
    return draw.found / draw.drawn


def _choose_constant(table: GoldTable, cutoff: int | None, size: int) -> list[int]:
    frequency = table.sum_rows(1.0)
    ranked = table.rank_by_weight(frequency)
    if cutoff is not None:
        return ranked[:size]
    best = ranked[: min(1, size)]
    return best if float(frequency[best].sum()) > table.empties else []


def _sum_over_answers(
    table: GoldTable, answers: Sequence[Sequence[str]], cutoff: int | None
) -> FloatArray:
    return table.sum_overlaps(answers, lambda sizes: 1.0 / (cutoff or sizes.clip(1.0)))


PRECISION = Definition(
    name="precision",
    score=score_precision,
    expect_random=_expect_random,
    cutoff="optional",
    plain_kinds=RANKING | SET,
    choose_constant=_choose_constant,
    sum_over_answers=_sum_over_answers,
)
