"""Accuracy against cost: which configurations are efficient, and how sure that is.

Points are configurations as they ran: no mix of two is presumed, as a convex hull would.

Source: Kapoor et al. 2024 (arXiv:2407.01502); HAL (arXiv:2510.11977).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.stats.bootstrap import resample_means
from coldrun.tasks.stats.intervals import Interval

Dominance = Literal["dominates", "dominated", "trade_off", "unresolved"]
Standing = Literal["efficient", "dominated", "unresolved"]


def judge_dominance(
    accuracy: Interval, cost: Interval, *, accuracy_margin: float, cost_margin: float = 0.0
) -> Dominance:
    """Judge A against B from intervals of their paired differences, A minus B.

    A dominates when it is not worse on either axis by more than the margin and better on one.
    `trade_off`: resolved better on one axis and worse on the other. Else `unresolved`.
    """
    forward = _is_shown_to_dominate(accuracy, cost, accuracy_margin, cost_margin)
    backward = _is_shown_to_dominate(
        Interval(-accuracy.high, -accuracy.low),
        Interval(-cost.high, -cost.low),
        accuracy_margin,
        cost_margin,
    )
    if forward != backward:
        return "dominates" if forward else "dominated"
    is_gain_dearer = accuracy.low > 0 and cost.low > 0
    is_loss_cheaper = accuracy.high < 0 and cost.high < 0
    return "trade_off" if is_gain_dearer or is_loss_cheaper else "unresolved"


def mark_points(
    names: Sequence[str], verdicts: Mapping[tuple[str, str], Dominance]
) -> dict[str, Standing]:
    """Mark each point by its comparisons with all others.

    `dominated` when another is shown to dominate it, the only reason to drop a point; `efficient`
    when every comparison is resolved in its favour or a trade-off; else `unresolved`.
    """
    standings: dict[str, Standing] = {}
    for name in names:
        found = {
            _mirror(verdict) if second == name else verdict
            for (first, second), verdict in verdicts.items()
            if name in (first, second)
        }
        if "dominated" in found:
            standings[name] = "dominated"
        else:
            standings[name] = "unresolved" if "unresolved" in found else "efficient"
    return standings


def share_on_frontier(accuracies: FloatArray, costs: FloatArray, *, seed: int) -> tuple[float, ...]:
    """Give each arm's share of resamples in which no other dominates it."""
    means = resample_means(np.column_stack([accuracies, costs]), seed=seed)
    # sums of one draw in another order differ in their last bits: equal means must stay equal
    accuracy, cost = np.hsplit(np.round(means, 12), 2)
    shares = []
    for arm in range(accuracy.shape[1]):
        mine = accuracy[:, [arm]], cost[:, [arm]]
        is_no_worse = (accuracy >= mine[0]) & (cost <= mine[1])
        is_better = (accuracy > mine[0]) | (cost < mine[1])
        shares.append(float((~(is_no_worse & is_better).any(axis=1)).mean()))
    return tuple(shares)


def _is_shown_to_dominate(
    accuracy: Interval, cost: Interval, accuracy_margin: float, cost_margin: float
) -> bool:
    is_no_worse = accuracy.low >= -accuracy_margin and cost.high <= cost_margin
    return is_no_worse and (accuracy.low > 0 or cost.high < 0)


def _mirror(verdict: Dominance) -> Dominance:
    if verdict == "dominates":
        return "dominated"
    return "dominates" if verdict == "dominated" else verdict
