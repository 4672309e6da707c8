"""mrr@k: the reciprocal rank of the first gold item, 0 beyond k.

Ranks come from the order of the answer alone, so the tie rules of the libraries never apply.

Source: Voorhees 1999, TREC-8 question answering track; `RR@k` of ir_measures, `mrr@k` of ranx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coldrun.tasks.stats.measures.definition import (
    Definition,
    RandomDraw,
    cut_items,
    find_first_rank,
)


def score_mrr(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float:
    """Score 1/rank of the first gold item within `cutoff` distinct items, else 0.0."""
    rank = find_first_rank(cut_items(items, cutoff), gold)
    return 0.0 if rank is None else 1.0 / rank


def _expect_random(draw: RandomDraw) -> float:
    total, survival = 0.0, 1.0
    known = len(draw.known)
    if known == 0:
        return 0.0
    for rank in range(1, min(draw.drawn, draw.items - known + 1) + 1):
        share = known / (draw.items - rank + 1)
        total += survival * share / rank
        survival *= 1.0 - share
    return total


MRR = Definition(
    name="mrr",
    score=score_mrr,
    expect_random=_expect_random,
    cutoff="required",
    sum_over_answers=lambda table, answers, _: table.sum_best_ranks(answers, is_reciprocal=True),
)
