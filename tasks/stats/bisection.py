"""Which points between two measured ends to run, so that changes are found with few runs.

An interval is split only while its two end vectors differ, per task and not in total: equal
totals may hide one task won and one lost. A change with its revert between equal ends stays
unseen. Never more runs than a backfill, but they follow one another in ceil(log2 m) rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from operator import ne
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def next_points(
    points: int, known: Mapping[int, V], differ: Callable[[V, V], bool] = ne
) -> tuple[int, ...]:
    """List the points to run next: the midpoint of every open interval, in order.

    Args:
        points: How many points there are; 0 and the last must be known.
        known: Outcome vectors, or their digests, by point.
        differ: Whether two vectors differ by more than the noise floor.

    Returns:
        Empty when no interval between neighbours in `known` is both open and different.

    Raises:
        ValueError: An end is not known.
    """
    _require_ends(points, known)
    places = sorted(known)
    return tuple(
        (left + right) // 2
        for left, right in pairwise(places)
        if right - left > 1 and differ(known[left], known[right])
    )


def bisect_states(states: Sequence[V], differ: Callable[[V, V], bool] = ne) -> tuple[int, ...]:
    """List the interior points that bisection runs over these states, left halves first."""
    return tuple(_iterate_bisection(states, differ, 0, len(states) - 1))


@dataclass(frozen=True, slots=True)
class BisectionCost:
    """Interior runs that bisection takes on average and at worst, and those of a backfill."""

    expected: float
    worst: int
    backfill: int


def bisection_cost(steps: int, changed_steps: int) -> BisectionCost:
    """Count the interior runs for `changed_steps` changes, equally likely anywhere, none undone.

    Args:
        steps: From one measured end to the other, at least 1.
        changed_steps: From 0 to `steps`.
    """
    memory: dict[tuple[int, int], tuple[float, int]] = {}
    expected, worst = _count_runs(steps, changed_steps, memory)
    return BisectionCost(expected, worst, steps - 1)


def _count_runs(
    steps: int, changed: int, memory: dict[tuple[int, int], tuple[float, int]]
) -> tuple[float, int]:
    if changed == 0 or steps == 1:
        return 0.0, 0
    if (steps, changed) not in memory:
        left = steps // 2
        right = steps - left
        expected, worst = 1.0, 0
        for inside in range(max(0, changed - right), min(left, changed) + 1):
            chance = comb(left, inside) * comb(right, changed - inside) / comb(steps, changed)
            mean_left, worst_left = _count_runs(left, inside, memory)
            mean_right, worst_right = _count_runs(right, changed - inside, memory)
            expected += chance * (mean_left + mean_right)
            worst = max(worst, 1 + worst_left + worst_right)
        memory[steps, changed] = expected, worst
    return memory[steps, changed]


def _iterate_bisection(
    states: Sequence[V], differ: Callable[[V, V], bool], left: int, right: int
) -> Iterator[int]:
    if right - left < 2 or not differ(states[left], states[right]):
        return
    middle = (left + right) // 2
    yield middle
    yield from _iterate_bisection(states, differ, left, middle)
    yield from _iterate_bisection(states, differ, middle, right)


def _require_ends(points: int, known: Mapping[int, V]) -> None:
    for end in (0, points - 1):
        if end not in known:
            raise ValueError(f"point {end} of {points} must be measured before bisecting")
