"""Accuracy, cost and time of configurations: which are efficient, and how sure that is.

Points are configurations as they ran: no mix of two is presumed, as a convex hull would. Ratios
are of sums, never the mean of ratios; a ratio alone ranks nothing.

Source: Kapoor et al. 2024 (arXiv:2407.01502); ratio estimator, Cochran, Sampling Techniques, ch. 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.stats.bootstrap import (
    RESAMPLES,
    iterate_draws,
    percentile_limits,
    resample_means,
)
from coldrun.tasks.stats.intervals import Interval, mean_interval

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
    mirror: dict[Dominance, Dominance] = {"dominates": "dominated", "dominated": "dominates"}
    standings: dict[str, Standing] = {}
    for name in names:
        found = {
            mirror.get(verdict, verdict) if second == name else verdict
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


QUANTILES = (0.5, 0.95)


def quantile_seconds(seconds: Sequence[float], probability: float) -> float | None:
    """Give a quantile by linear interpolation, type 7; None without a value.

    Polars defaults to the nearest value, and DuckDB keeps the scale of a DECIMAL column.

    Source: Hyndman & Fan 1996, type 7; NumPy's default.
    """
    return float(np.quantile(seconds, probability)) if len(seconds) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyDifference:
    """Seconds per task of two arms on the same tasks, first minus second, with 95 % intervals.

    `ratio` is the geometric mean of the tasks' ratios: 2 means typically twice as slow. It and its
    interval are None where a time is not positive.
    """

    p50: float
    p50_interval: Interval
    p95: float
    p95_interval: Interval
    ratio: float | None
    ratio_interval: Interval | None


def compare_latency(first: FloatArray, second: FloatArray, *, seed: int) -> LatencyDifference:
    """Compare the latencies of two arms; tasks are drawn once for both."""
    if first.shape != second.shape or first.size == 0:
        raise ValueError(f"paired latencies need the same tasks: {first.size}, {second.size}")
    p50, p95 = np.quantile(first, QUANTILES) - np.quantile(second, QUANTILES)
    resampled = np.concatenate(
        [
            np.quantile(first[drawn], QUANTILES, axis=1)
            - np.quantile(second[drawn], QUANTILES, axis=1)
            for drawn in iterate_draws(first.size, seed=seed, resamples=RESAMPLES)
        ],
        axis=1,
    )
    ratio = ratio_interval = None
    if min(first.min(), second.min()) > 0:
        logs = np.log(first / second)
        limits = mean_interval(logs, seed)
        ratio = float(np.exp(logs.mean()))
        ratio_interval = Interval(float(np.exp(limits.low)), float(np.exp(limits.high)))
    return LatencyDifference(
        p50=float(p50),
        p50_interval=Interval(*percentile_limits(resampled[0])),
        p95=float(p95),
        p95_interval=Interval(*percentile_limits(resampled[1])),
        ratio=ratio,
        ratio_interval=ratio_interval,
    )
