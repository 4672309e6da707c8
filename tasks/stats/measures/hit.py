"""hit@k: whether any gold item stands among the first k.

Also called success@k and any@k. Binary, 0 or 1. Duplicates are removed before the cut.

Source: TREC `success_k`; `Success@k` of ir_measures, `hit_rate@k` of ranx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coldrun.tasks.stats.measures.ranks import cut_items, find_first_rank


def score_hit(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float | None:
    """Score 1.0 when a gold item is in the first `cutoff` distinct items, else 0.0.

    Returns:
        None when gold is empty: empty-gold tasks go to set measures only.
    """
    if not gold:
        return None
    return 0.0 if find_first_rank(cut_items(items, cutoff), gold) is None else 1.0
