"""Accuracy against cost: which configurations are efficient, and how sure that is.

Points are configurations as they ran. The upper convex hull presumes that two configurations may
be mixed at random, and drops efficient ones; it is here to be compared with, not to be reported.

Source: Kapoor et al. 2024 (arXiv:2407.01502); HAL (arXiv:2510.11977).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.stats.bootstrap import resample_means
from coldrun.tasks.stats.intervals import Interval

FloatArray = NDArray[np.float64]
Dominance = Literal["A_DOMINATES", "B_DOMINATES", "TRADE_OFF", "UNRESOLVED"]
Standing = Literal["efficient", "dominated", "unresolved"]


@dataclass(frozen=True, slots=True)
class Point:
    """A configuration: accuracy (higher is better) and cost in any one unit (lower is better)."""

    accuracy: float
    cost: float

    def is_dominating(self, other: Point) -> bool:
        """Whether it is at least as accurate and no dearer, with one of the two strict."""
        return (
            self.accuracy >= other.accuracy
            and self.cost <= other.cost
            and (self.accuracy > other.accuracy or self.cost < other.cost)
        )


def find_frontier(points: Mapping[str, Point]) -> tuple[str, ...]:
    """Find the points that no other dominates, by name; equal points do not dominate each other."""
    return tuple(
        sorted(
            name
            for name, point in points.items()
            if not any(other.is_dominating(point) for other in points.values())
        )
    )


def find_hull(points: Mapping[str, Point]) -> tuple[str, ...]:
    """Find the vertices of the upper convex hull of the frontier, cheapest first."""
    frontier = sorted(find_frontier(points), key=lambda name: (points[name].cost, name))
    hull: list[str] = []
    for name in frontier:
        while len(hull) >= 2 and not _is_turning_right(*(points[x] for x in (*hull[-2:], name))):
            hull.pop()
        hull.append(name)
    return tuple(hull)


def find_cheapest(points: Mapping[str, Point], *, min_accuracy: float) -> str | None:
    """Name the cheapest configuration that is accurate enough, None when none is.

    Of equally cheap ones the more accurate, then the first by name.
    """
    enough = [name for name, point in points.items() if point.accuracy >= min_accuracy]
    return min(
        enough, key=lambda name: (points[name].cost, -points[name].accuracy, name), default=None
    )


def judge_dominance(
    accuracy: Interval, cost: Interval, *, accuracy_margin: float, cost_margin: float
) -> Dominance:
    """Judge A against B from intervals of their paired differences, A minus B.

    A dominates when it is not worse on either axis by more than the margin and better on one.
    `TRADE_OFF`: resolved better on one axis and worse on the other. Else `UNRESOLVED`.

    Args:
        accuracy: Of the difference of accuracies.
        cost: Of the difference of costs.
        accuracy_margin: One task, or the noise band if larger, as a rate.
        cost_margin: In the unit of cost.
    """
    forward = _is_shown_to_dominate(accuracy, cost, accuracy_margin, cost_margin)
    backward = _is_shown_to_dominate(
        Interval(-accuracy.high, -accuracy.low),
        Interval(-cost.high, -cost.low),
        accuracy_margin,
        cost_margin,
    )
    if forward != backward:
        return "A_DOMINATES" if forward else "B_DOMINATES"
    is_gain_dearer = accuracy.low > 0 and cost.low > 0
    is_loss_cheaper = accuracy.high < 0 and cost.high < 0
    return "TRADE_OFF" if is_gain_dearer or is_loss_cheaper else "UNRESOLVED"


def mark_points(
    names: Sequence[str], verdicts: Mapping[tuple[str, str], Dominance]
) -> dict[str, Standing]:
    """Mark each point by its comparisons with all others.

    Args:
        names: The points.
        verdicts: Of `judge_dominance` by (A, B), each pair once in either order.

    Returns:
        `dominated` when another is shown to dominate it, the only reason to drop a point;
        `efficient` when every comparison is resolved in its favour or a trade-off; else
        `unresolved`, drawn hollow.
    """
    standings: dict[str, Standing] = {}
    for name in names:
        found = {
            _mirror(verdict) if second == name else verdict
            for (first, second), verdict in verdicts.items()
            if name in (first, second)
        }
        if "B_DOMINATES" in found:
            standings[name] = "dominated"
        else:
            standings[name] = "unresolved" if "UNRESOLVED" in found else "efficient"
    return standings


@dataclass(frozen=True, slots=True)
class JointBootstrap:
    """Shares of resamples, each one draw of tasks for all arms and both axes.

    `on_frontier` by arm; `dominates`, `is_more_accurate` and `is_cheaper` by (A, B).
    """

    on_frontier: dict[str, float]
    dominates: dict[tuple[str, str], float]
    is_more_accurate: dict[tuple[str, str], float]
    is_cheaper: dict[tuple[str, str], float]


def bootstrap_frontier(
    accuracies: Mapping[str, Sequence[float] | FloatArray],
    costs: Mapping[str, Sequence[float] | FloatArray],
    *,
    seed: int,
    resamples: int = 9999,
) -> JointBootstrap:
    """Resample tasks jointly and count how often each arm is efficient or dominates another.

    Args:
        accuracies: Per arm its scores, shape (tasks,), the same tasks in the same order.
        costs: Per arm its costs, same shape.
        seed: Unused up to 6 tasks, where every resample is tried.
    """
    names = list(accuracies)
    columns = np.array([*accuracies.values(), *(costs[name] for name in names)], float).T
    means = resample_means(columns, seed=seed, resamples=resamples)
    # sums of one draw in another order differ in their last bits: equal means must stay equal
    means = np.round(means, 12)
    accuracy, cost = means[:, : len(names)], means[:, len(names) :]
    result = JointBootstrap({}, {}, {}, {})
    beaten = np.zeros(accuracy.shape, dtype=bool)
    for a, first in enumerate(names):
        for b, second in enumerate(names):
            if a == b:
                continue
            better, cheaper = accuracy[:, a] > accuracy[:, b], cost[:, a] < cost[:, b]
            no_worse = (accuracy[:, a] >= accuracy[:, b]) & (cost[:, a] <= cost[:, b])
            dominates = no_worse & (better | cheaper)
            beaten[:, b] |= dominates
            result.dominates[first, second] = float(dominates.mean())
            result.is_more_accurate[first, second] = float(better.mean())
            result.is_cheaper[first, second] = float(cheaper.mean())
    for a, name in enumerate(names):
        result.on_frontier[name] = float((~beaten[:, a]).mean())
    return result


def _is_turning_right(first: Point, middle: Point, last: Point) -> bool:
    rise = (middle.accuracy - first.accuracy) * (last.cost - first.cost)
    return rise > (last.accuracy - first.accuracy) * (middle.cost - first.cost)


def _is_shown_to_dominate(
    accuracy: Interval, cost: Interval, accuracy_margin: float, cost_margin: float
) -> bool:
    is_no_worse = accuracy.low >= -accuracy_margin and cost.high <= cost_margin
    return is_no_worse and (accuracy.low > 0 or cost.high < 0)


def _mirror(verdict: Dominance) -> Dominance:
    mirrored: dict[Dominance, Dominance] = {
        "A_DOMINATES": "B_DOMINATES",
        "B_DOMINATES": "A_DOMINATES",
        "TRADE_OFF": "TRADE_OFF",
        "UNRESOLVED": "UNRESOLVED",
    }
    return mirrored[verdict]
