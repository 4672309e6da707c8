"""precision and precision@k: the share of what was answered that is gold.

precision@k divides by k even when fewer items came back (trec_eval, ir_measures and ranx do so).
precision without a cut-off divides by the number of distinct items answered. Both empty scores 1,
exactly one empty 0.

Source: van Rijsbergen 1979; the rule for empty sets is that of SQuAD 2.0 (Rajpurkar et al. 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coldrun.tasks.stats.measures.ranks import cut_items


def score_precision(
    items: Sequence[str], gold: Mapping[str, float], cutoff: int | None
) -> float | None:
    """Score the gold items found, divided by `cutoff`, or by the answer's size without one.

    Returns:
        A value in [0, 1]; None for empty gold with a cut-off, which is a ranking measure.
    """
    if cutoff is not None:
        if not gold:
            return None
        return sum(item in gold for item in cut_items(items, cutoff)) / cutoff
    answered = set(items)
    if not answered or not gold:
        return float(not answered and not gold)
    return len(answered & gold.keys()) / len(answered)
