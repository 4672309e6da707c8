"""recall and recall@k: the share of gold that was found.

Always-everything has recall 1, so recall never gates; it is printed beside precision. Both empty
scores 1, exactly one empty 0: an arm that answers anything on an empty-gold task gets nothing.

Source: van Rijsbergen 1979; the rule for empty sets is that of SQuAD 2.0 (Rajpurkar et al. 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coldrun.tasks.stats.measures.ranks import cut_items


def score_recall(
    items: Sequence[str], gold: Mapping[str, float], cutoff: int | None
) -> float | None:
    """Score the gold items found within `cutoff` distinct items, divided by all gold items.

    Returns:
        A value in [0, 1]; None for empty gold with a cut-off, which is a ranking measure.
    """
    if cutoff is not None and not gold:
        return None
    answered = set(items) if cutoff is None else set(cut_items(items, cutoff))
    if not answered or not gold:
        return float(not answered and not gold)
    return len(answered & gold.keys()) / len(gold)
