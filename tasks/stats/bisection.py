"""Which points between two measured ends to run, so that changes are found with few runs.

An interval is split only while its two end vectors differ, per task and not in total. A change with
its revert between equal ends stays unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from operator import ne
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def next_points(
    points: int, known: Mapping[int, V], differ: Callable[[V, V], bool] = ne
) -> tuple[int, ...]:
    """List the points to run next: the midpoint of every open interval whose ends differ."""
    for end in (0, points - 1):
        if end not in known:
            raise ValueError(f"point {end} of {points} must be measured before bisecting")
    places = sorted(known)
    return tuple(
        (left + right) // 2
        for left, right in pairwise(places)
        if right - left > 1 and differ(known[left], known[right])
    )


def collapse_equal(trees: Sequence[Hashable]) -> tuple[tuple[int, ...], ...]:
    """Group neighbouring points whose product tree is the same: one of them stands for all."""
    groups: list[list[int]] = []
    for place, tree in enumerate(trees):
        if groups and trees[groups[-1][-1]] == tree:
            groups[-1].append(place)
        else:
            groups.append([place])
    return tuple(tuple(group) for group in groups)
