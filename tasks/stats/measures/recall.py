"""recall and recall@k: the share of gold that was found.

Always-everything has recall 1, so recall never gates; it is printed beside precision. Both empty
scores 1, exactly one empty 0: an arm that answers anything on an empty-gold task gets nothing.

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


def score_recall(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float:
    """Score the gold items found within `cutoff` distinct items, divided by all gold items."""
    answered = set(cut_items(items, cutoff))
    if (empty := score_empties(answered, gold)) is not None:
        return empty
    return len(answered & gold.keys()) / len(gold)


def _expect_random(draw: RandomDraw) -> float:
    if (empty := score_empties(range(draw.drawn), draw.gold)) is not None:
        return empty
    return draw.found / len(draw.gold)


def _choose_constant(table: GoldTable, cutoff: int | None, size: int) -> list[int]:
    weights = table.sum_rows(1.0 / table.sizes.clip(1.0))
    best = table.rank_by_weight(weights)[:size]
    if cutoff is None and float(weights[best].sum()) <= table.empties:
        return []
    return best


def _sum_over_answers(
    table: GoldTable, answers: Sequence[Sequence[str]], _: int | None
) -> FloatArray:
    totals: FloatArray = table.sum_overlaps(answers, lambda _: 1.0) / table.sizes.clip(1.0)
    return totals


RECALL = Definition(
    name="recall",
    score=score_recall,
    expect_random=_expect_random,
    cutoff="optional",
    plain_kinds=RANKING | SET,
    can_gate=False,
    choose_constant=_choose_constant,
    sum_over_answers=_sum_over_answers,
)
