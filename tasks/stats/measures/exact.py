"""exact: whether the answer is the gold set, nothing more and nothing less.

Order and duplicates do not count. Two empty sets are equal. Binary, 0 or 1. The best constant
answer scores exactly the share of the commonest answer shape.

Source: `exact match` of SQuAD (Rajpurkar et al. 2016), on sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def score_exact(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float:
    """Score 1.0 when the distinct items equal gold, else 0.0; exact takes no cut-off."""
    del cutoff
    return float(set(items) == gold.keys())
