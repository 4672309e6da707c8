"""What every measure on an ordered list does first: drop duplicates, then cut."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice


def cut_items(items: Sequence[str], cutoff: int | None) -> list[str]:
    """Keep the first occurrence of each item, and then the first `cutoff` of them.

    Args:
        items: An answer, best first; duplicates allowed.
        cutoff: How many distinct items to keep; None keeps all.
    """
    return list(islice(dict.fromkeys(items), cutoff))


def find_first_rank(ranked: Iterable[str], gold: Collection[str]) -> int | None:
    """Give the 1-based rank of the first gold item, None when there is none."""
    for rank, item in enumerate(ranked, start=1):
        if item in gold:
            return rank
    return None
