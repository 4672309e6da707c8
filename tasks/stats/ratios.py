"""Ratios of sums: score per dollar, dollars per success. Never the mean of ratios.

A ratio alone ranks nothing: the cheaper arm may win it with the worse score.

Source: ratio estimator, Cochran, Sampling Techniques, ch. 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.stats.bootstrap import percentile_limits, resample_means
from coldrun.tasks.stats.intervals import Interval

FloatArray = NDArray[np.float64]
Values = Sequence[float] | FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRatio:
    """Score against cost of one arm over all its tasks.

    `score_per_dollar` is None when nothing was spent; `dollars_per_success` is infinite without a
    success. The errors are of score_per_dollar, None where undefined.
    """

    score_per_dollar: float | None
    dollars_per_success: float | None
    delta_error: float | None
    jackknife_error: float | None


def describe_cost_ratio(scores: Values, costs_usd: Values) -> CostRatio:
    """Compute score per dollar and its errors.

    Args:
        scores: Shape (tasks,).
        costs_usd: Shape (tasks,), what each task cost, failed ones included; from 0.

    Raises:
        ValueError: The lengths differ, a cost is negative, or there is no task.
    """
    score, cost = _check(scores, costs_usd)
    total_score, total_cost = float(score.sum()), float(cost.sum())
    successes = total_cost / total_score if total_score > 0 else inf
    if total_cost == 0:
        return CostRatio(
            score_per_dollar=None,
            dollars_per_success=None if total_score == 0 else 0.0,
            delta_error=None,
            jackknife_error=None,
        )
    n = len(score)
    ratio = total_score / total_cost
    residuals = score - ratio * cost
    delta = jackknife = None
    if n > 1:
        delta = sqrt(float(residuals @ residuals) / (n - 1) / n) / float(cost.mean())
        jackknife = _jackknife_error(score, cost)
    return CostRatio(
        score_per_dollar=ratio,
        dollars_per_success=successes,
        delta_error=delta,
        jackknife_error=jackknife,
    )


@dataclass(frozen=True, slots=True)
class RatioDifference:
    """Score per dollar of one arm minus another's, with its paired bootstrap interval."""

    difference: float
    interval: Interval


def compare_cost_ratios(
    scores: Values,
    costs_usd: Values,
    other_scores: Values,
    other_costs_usd: Values,
    *,
    seed: int,
    resamples: int = 9999,
) -> RatioDifference | None:
    """Compare score per dollar of two arms on the same tasks.

    Tasks are drawn once for both arms, and for numerator and denominator alike.

    Returns:
        None when an arm spent nothing in all or in some resample: the ratio is undefined.

    Raises:
        ValueError: The lengths differ, a cost is negative, or there is no task.
    """
    first, second = _check(scores, costs_usd), _check(other_scores, other_costs_usd)
    if len(first[0]) != len(second[0]):
        raise ValueError(f"paired arms need the same tasks: {len(first[0])}, {len(second[0])}")
    scored, spent = (np.column_stack(columns) for columns in zip(first, second, strict=True))
    return compare_all_cost_ratios(scored, spent, [(0, 1)], seed=seed, resamples=resamples)[0]


def compare_all_cost_ratios(
    scores: FloatArray,
    costs_usd: FloatArray,
    pairs: Sequence[tuple[int, int]],
    *,
    seed: int,
    resamples: int = 9999,
) -> list[RatioDifference | None]:
    """`compare_cost_ratios` for many pairs of arms, which share the bootstrap's draws.

    Args:
        scores: Shape (tasks, arms).
        costs_usd: Same shape, from 0.
        pairs: Columns (first, second).

    Raises:
        ValueError: A cost is negative, or there is no task.
    """
    for score, cost in zip(scores.T, costs_usd.T, strict=True):
        _check(score, cost)
    means = resample_means(np.column_stack([scores, costs_usd]), seed=seed, resamples=resamples)
    total_scores, total_costs = scores.sum(axis=0), costs_usd.sum(axis=0)
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


def _jackknife_error(score: FloatArray, cost: FloatArray) -> float | None:
    n = len(score)
    rest = cost.sum() - cost
    if rest.min() <= 0:
        return None
    left_out = (score.sum() - score) / rest
    return sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))


def _check(scores: Values, costs_usd: Values) -> tuple[FloatArray, FloatArray]:
    score = np.asarray(scores, dtype=np.float64)
    cost = np.asarray(costs_usd, dtype=np.float64)
    if len(score) != len(cost) or len(score) == 0:
        raise ValueError(f"every task needs a score and a cost: {len(score)}, {len(cost)}")
    if cost.min() < 0:
        raise ValueError(f"costs must not be negative, found {cost.min()}")
    return score, cost
