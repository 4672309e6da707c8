"""mrr@k: the reciprocal rank of the first gold item, 0 beyond k.

The mean over tasks is the mean reciprocal rank. A value without its cut-off cannot be compared:
the cut-off is always stored and printed. Ranks come from the order of the answer alone; scores
that an arm reports are not read, so the tie rules of the libraries never apply.

Source: Voorhees 1999, TREC-8 question answering track; `RR@k` of ir_measures, `mrr@k` of ranx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coldrun.tasks.stats.measures.ranks import cut_items, find_first_rank


def score_mrr(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float | None:
    """Score 1/rank of the first gold item within `cutoff` distinct items, else 0.0.

    Returns:
        None when gold is empty: empty-gold tasks go to set measures only.
    """
    if not gold:
        return None
    rank = find_first_rank(cut_items(items, cutoff), gold)
    return 0.0 if rank is None else 1.0 / rank
