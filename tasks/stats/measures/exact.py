"""exact: whether the answer is the gold set, nothing more and nothing less.

Source: `exact match` of SQuAD (Rajpurkar et al. 2016), on sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from typing import TYPE_CHECKING

from coldrun.tasks.stats.measures.definition import SET, Definition, RandomDraw

if TYPE_CHECKING:
    from coldrun.tasks.lib.arrays import FloatArray
    from coldrun.tasks.stats.gold_table import GoldTable


def score_exact(items: Sequence[str], gold: Mapping[str, float], _: int | None) -> float:
    """Score 1.0 when the distinct items equal gold, else 0.0."""
    return float(set(items) == gold.keys())


def _expect_random(draw: RandomDraw) -> float:
    if draw.drawn != len(draw.gold) or len(draw.known) != len(draw.gold):
        return 0.0
    return 1.0 / comb(draw.items, draw.drawn)


def _choose_constant(table: GoldTable, _: int | None, __: int) -> list[int]:
    counted = Counter(_shapes(table)).items()
    return list(min(counted, key=lambda pair: (-pair[1], pair[0]))[0])


def _sum_over_answers(
    table: GoldTable, answers: Sequence[Sequence[str]], _: int | None
) -> FloatArray:
    import numpy as np

    given = Counter(frozenset(items) for items in answers)
    return np.array(
        [given[frozenset(table.items[column] for column in shape)] for shape in _shapes(table)],
        dtype=np.float64,
    )


def _shapes(table: GoldTable) -> list[tuple[int, ...]]:
    # Columns are in text order, so that these are shapes.
    ends = table.marks.indptr
    return [
        tuple(sorted(int(column) for column in table.marks.indices[ends[row] : ends[row + 1]]))
        for row in range(len(table.sizes))
    ]


EXACT = Definition(
    name="exact",
    score=score_exact,
    expect_random=_expect_random,
    cutoff="none",
    is_binary=True,
    plain_kinds=SET,
    choose_constant=_choose_constant,
    sum_over_answers=_sum_over_answers,
)
