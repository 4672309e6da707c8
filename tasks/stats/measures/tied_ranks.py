"""Expected hit and reciprocal rank when equal scores leave the order open.

An arm that returns scores with real ties has no rank, only a group of ranks. Libraries break such
ties by document name, in opposite directions, or by insertion; the expectation over all orders of
the group needs no such rule.

Source: McSherry & Najork 2008 (ECIR).
"""

from __future__ import annotations

from math import comb


def expect_tied_hit(*, above: int, group: int, gold_in_group: int, cutoff: int) -> float:
    """Give P(a gold item is in the first `cutoff`) over all orders of one group of equal scores.

    Args:
        above: Items that score higher, none of them gold.
        group: Items of the tied group.
        gold_in_group: Gold items among them, from 0 to `group`.
        cutoff: From 1.
    """
    drawn = min(max(cutoff - above, 0), group)
    return 1.0 - comb(group - gold_in_group, drawn) / comb(group, drawn)


def expect_tied_reciprocal_rank(
    *, above: int, group: int, gold_in_group: int, cutoff: int | None = None
) -> float:
    """Give the mean of 1/rank of the first gold item over all orders of one tied group."""
    last = group if cutoff is None else min(max(cutoff - above, 0), group)
    misses = group - gold_in_group
    # P(first gold at place j of the group) = C(group-j, gold-1) / C(group, gold)
    if gold_in_group == 0:
        return 0.0
    orders = comb(group, gold_in_group)
    return sum(
        comb(group - place, gold_in_group - 1) / orders / (above + place)
        for place in range(1, min(last, misses + 1) + 1)
    )
