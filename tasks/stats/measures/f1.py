"""f1: the harmonic mean of precision and recall of one task; its mean over tasks is macro-F1.

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
    score_empties,
)

if TYPE_CHECKING:
    from coldrun.tasks.lib.arrays import FloatArray
    from coldrun.tasks.stats.gold_table import GoldTable


def score_f1(items: Sequence[str], gold: Mapping[str, float], _: int | None) -> float:
    """Score 2·found/(answered + gold) over distinct items, in [0, 1]."""
    answered = set(items)
    if not answered and not gold:
        return 1.0
    return 2.0 * len(answered & gold.keys()) / (len(answered) + len(gold))


def _expect_random(draw: RandomDraw) -> float:
    if (empty := score_empties(range(draw.drawn), draw.gold)) is not None:
        return empty
    return 2.0 * draw.found / (draw.drawn + len(draw.gold))


def _choose_constant(table: GoldTable, _: int | None, size: int) -> list[int]:
    chosen: list[int] = []
    best_total = float(table.empties)
    for length in range(1, min(size, len(table.items)) + 1):
        shares = 2.0 / (length + table.sizes)
        if float(shares @ table.sizes) <= best_total + 1e-9:
            break  # not even finding all gold would pay at this size or a larger one
        weights = table.sum_rows(shares)
        ranked = table.rank_by_weight(weights)[:length]
        total = float(weights[ranked].sum())
        if total > best_total + 1e-9:
            chosen, best_total = ranked, total
    return chosen


def _sum_over_answers(
    table: GoldTable, answers: Sequence[Sequence[str]], _: int | None
) -> FloatArray:
    import numpy as np

    sizes = np.array([len(items) for items in answers], dtype=np.float64)
    overlap = (table.marks @ table.mark_answers(answers).T).tocoo()
    shares = 2.0 * overlap.data / (table.sizes[overlap.row] + sizes[overlap.col])
    totals = np.bincount(overlap.row, shares, minlength=len(table.sizes))
    return np.where(table.sizes == 0, float(np.count_nonzero(sizes == 0)), totals)


F1 = Definition(
    name="f1",
    score=score_f1,
    expect_random=_expect_random,
    cutoff="none",
    plain_kinds=RANKING | SET,
    choose_constant=_choose_constant,
    sum_over_answers=_sum_over_answers,
)
