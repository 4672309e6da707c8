"""ndcg@k: discounted cumulative gain over that of the ideal ranking of gold.

Linear gain and the discount 1/log2(rank + 1), as in trec_eval, ir_measures and ranx.

Source: Järvelin & Kekäläinen 2002.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coldrun.tasks.stats.measures.definition import Definition, RandomDraw, cut_items

if TYPE_CHECKING:
    from coldrun.tasks.lib.arrays import FloatArray
    from coldrun.tasks.stats.gold_table import GoldTable


def score_ndcg(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float:
    """Score the gain of the first `cutoff` distinct items over the most that they could have."""
    gained = [gold.get(item, 0.0) for item in cut_items(items, cutoff)]
    ideal = sorted(gold.values(), reverse=True)[:cutoff]
    # min: the two sums may round apart in the last place for a perfect ranking
    return min(1.0, _discount(gained) / _discount(ideal))


def _discount(grades: Sequence[float]) -> float:
    return math.fsum(
        grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1) if grade
    )


def _expect_random(draw: RandomDraw) -> float:
    if draw.items == 0:
        return 0.0
    mean_grade = sum(draw.gold[item] for item in draw.known) / draw.items
    ideal = sorted(draw.gold.values(), reverse=True)[: draw.cutoff]
    return mean_grade * _discount([1.0] * draw.drawn) / _discount(ideal)


def _choose_constant(table: GoldTable, cutoff: int | None, size: int) -> list[int]:
    import numpy as np

    weights = np.asarray(table.grades.T @ (1.0 / _ideals(table, cutoff)), dtype=np.float64)
    return table.rank_by_weight(weights)[:size]


def _sum_over_answers(
    table: GoldTable, answers: Sequence[Sequence[str]], cutoff: int | None
) -> FloatArray:
    import numpy as np

    discounts = np.zeros(len(table.items))
    for items in answers:
        for rank, item in enumerate(items, start=1):
            column = table.columns.get(item)
            if column is not None:
                discounts[column] += 1.0 / np.log2(rank + 1)
    return np.asarray(table.grades @ discounts / _ideals(table, cutoff), dtype=np.float64)


def _ideals(table: GoldTable, cutoff: int | None) -> FloatArray:
    import numpy as np

    grades = table.grades
    return np.array(
        [
            _discount(np.sort(grades.data[start:end])[::-1][:cutoff].tolist())
            for start, end in zip(grades.indptr, grades.indptr[1:], strict=False)
        ]
    )


NDCG = Definition(
    name="ndcg",
    score=score_ndcg,
    expect_random=_expect_random,
    cutoff="required",
    choose_constant=_choose_constant,
    sum_over_answers=_sum_over_answers,
)
