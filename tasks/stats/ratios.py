"""Ratios of sums: score per cost, cost per success. Never the mean of ratios.

A ratio alone ranks nothing: the cheaper arm may win it with the worse score.

Source: ratio estimator, Cochran, Sampling Techniques, ch. 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.stats.bootstrap import percentile_limits, resample_means
from coldrun.tasks.stats.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRatio:
    """Score against cost of one arm over all its tasks.

    `score_per_cost` is None when nothing was spent; `cost_per_success` is None without a success.
    """

    score_per_cost: float | None
    cost_per_success: float | None


def describe_cost_ratio(scores: FloatArray, costs: FloatArray) -> CostRatio:
    """Compute score per unit of cost, and cost per unit of score, failed tasks included."""
    _check(scores, costs)
    total_score, total_cost = float(scores.sum()), float(costs.sum())
    return CostRatio(
        score_per_cost=total_score / total_cost if total_cost > 0 else None,
        cost_per_success=total_cost / total_score if total_score > 0 else None,
    )


@dataclass(frozen=True, slots=True)
class RatioDifference:
    """Score per cost of one arm minus another's, with its paired bootstrap interval."""

    difference: float
    interval: Interval


def compare_cost_ratios(
    scores: FloatArray,
    costs: FloatArray,
    pairs: Sequence[tuple[int, int]],
    *,
    seed: int,
) -> list[RatioDifference | None]:
    """Compare score per cost of pairs of arms on the same tasks, shapes (tasks, arms).

    Tasks are drawn once for all arms, and for numerator and denominator alike. None where an arm
    spent nothing in all or in some resample.
    """
    for score, cost in zip(scores.T, costs.T, strict=True):
        _check(score, cost)
    means = resample_means(np.column_stack([scores, costs]), seed=seed)
    total_scores, total_costs = scores.sum(axis=0), costs.sum(axis=0)
    mean_scores, mean_costs = np.hsplit(means, 2)

    def compare(a: int, b: int) -> RatioDifference | None:
        if min(total_costs[a], total_costs[b]) <= 0 or mean_costs[:, [a, b]].min() <= 0:
            return None
        low, high = percentile_limits(
            mean_scores[:, a] / mean_costs[:, a] - mean_scores[:, b] / mean_costs[:, b]
        )
        return RatioDifference(
            difference=float(total_scores[a] / total_costs[a] - total_scores[b] / total_costs[b]),
            interval=Interval(low, high),
        )

    return [compare(first, second) for first, second in pairs]


def _check(scores: FloatArray, costs: FloatArray) -> None:
    if len(scores) != len(costs) or len(scores) == 0:
        raise ValueError(f"every task needs a score and a cost: {len(scores)}, {len(costs)}")
    if costs.min() < 0:
        raise ValueError(f"costs must not be negative, found {costs.min()}")
