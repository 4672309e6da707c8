"""hit@k: whether any gold item stands among the first k; also called success@k and any@k.

The best constant list is a maximum cover: NP-hard in general, and solved exactly here as an integer
program, or with the bound that was proven.

Source: TREC `success_k`; `Success@k` of ir_measures, `hit_rate@k` of ranx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import TYPE_CHECKING

from coldrun.tasks.stats.measures.definition import (
    Definition,
    RandomDraw,
    cut_items,
    find_first_rank,
)

if TYPE_CHECKING:
    from coldrun.tasks.stats.gold_table import GoldTable


def score_hit(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float:
    """Score 1.0 when a gold item is in the first `cutoff` distinct items, else 0.0."""
    return 0.0 if find_first_rank(cut_items(items, cutoff), gold) is None else 1.0


def _expect_random(draw: RandomDraw) -> float:
    ways = comb(draw.items, draw.drawn)
    return 1.0 - comb(draw.items - len(draw.known), draw.drawn) / ways


def _choose_constant(table: GoldTable, cutoff: int | None, size: int) -> list[int]:
    best, _ = table.cover_best(min(cutoff or size, size))
    return [*best, *(column for column in table.cover_greedily(size) if column not in best)][:size]


HIT = Definition(
    name="hit",
    score=score_hit,
    expect_random=_expect_random,
    cutoff="required",
    is_binary=True,
    choose_constant=_choose_constant,
    sum_over_answers=lambda table, answers, _: table.sum_best_ranks(answers, is_reciprocal=False),
)
