"""Configurations by accuracy and cost: paired differences on both axes, and who is efficient.

Every interval is over one shared draw of tasks, and simultaneous over the rivals of one arm, so
that one with many rivals is not dropped by chance.

Source: Kapoor et al. 2024 (arXiv:2407.01502).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, isfinite

import numpy as np

from coldrun.tasks.judge.cost_model import CostPairPart, LatencyPart
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.stats.cost_axis import (
    Dominance,
    RatioDifference,
    Standing,
    compare_cost_ratios,
    compare_latency,
    judge_dominance,
    mark_points,
    share_on_frontier,
)
from coldrun.tasks.stats.intervals import Interval, mean_intervals, paired_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class CostedArm:
    """One configuration: per task its score and what the answer cost, trials averaged.

    `seconds` has the tasks that it executed in this run. `is_lower_bound`: some attempts did not
    say what they used, so it may have cost more. `noise_tasks` is the band within which two runs of
    it differ, 0 where it is not known.
    """

    name: str
    scores: FloatArray
    costs: FloatArray
    seconds: Mapping[str, float]
    is_lower_bound: bool = False
    noise_tasks: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostComparison:
    """All pairs, and by arm its standing and its share of resamples on the frontier.

    The shares are empty where an arm's cost is a lower bound. `confidence` is that of each interval
    of accuracy and cost.
    """

    pairs: list[CostPairPart]
    latencies: list[LatencyPart]
    standings: dict[str, Standing]
    on_frontier: dict[str, float]
    confidence: float


def compare_costs(
    arms: Sequence[CostedArm],
    *,
    judged: Collection[str] = (),
    margin_tasks: float = 1.0,
    seed: int,
) -> CostComparison | None:
    """Compare every two configurations, costs in one unit; None with fewer than two.

    Names in `judged` come first in a pair; of others the later one does. An arm may be worse by
    `margin_tasks`, at least one and at least the noise of both, and still count as good.
    """
    if len(arms) < 2:
        return None
    confidence = 1 - 0.05 / (len(arms) - 1)
    ordered = [
        (second, first) if first.name not in judged or second.name in judged else (first, second)
        for first, second in combinations(arms, 2)
    ]
    place = {arm.name: column for column, arm in enumerate(arms)}
    places = [(place[first.name], place[second.name]) for first, second in ordered]
    scores = np.column_stack([arm.scores for arm in arms])
    costs = np.column_stack([arm.costs for arm in arms])
    intervals = mean_intervals(costs, seed, pairs=places, confidence=confidence)[len(arms) :]
    ratios = compare_cost_ratios(scores, costs, places, seed=seed)
    pairs, verdicts = [], {}
    for (first, second), cost, ratio in zip(ordered, intervals, ratios, strict=True):
        accuracy = paired_interval(first.scores - second.scores, seed, confidence=confidence)
        # nothing bounds the cost of an arm that was silent, nor a difference of one task
        bounded = Interval(
            -inf if second.is_lower_bound or len(scores) == 1 else cost.low,
            inf if first.is_lower_bound or len(scores) == 1 else cost.high,
        )
        margin = max(1.0, margin_tasks, first.noise_tasks, second.noise_tasks) / len(scores)
        verdict = judge_dominance(accuracy, bounded, accuracy_margin=margin)
        verdicts[first.name, second.name] = verdict
        pairs.append(_describe_pair(first, second, accuracy, bounded, ratio, verdict))
    names = [arm.name for arm in arms]
    is_known = not any(arm.is_lower_bound for arm in arms)
    shares = share_on_frontier(scores, costs, seed=seed) if is_known else ()
    return CostComparison(
        pairs=pairs,
        latencies=[
            part for pair in ordered if (part := _compare_latencies(*pair, seed=seed)) is not None
        ],
        standings=mark_points(names, verdicts),
        on_frontier=dict(zip(names, shares, strict=is_known)),
        confidence=confidence,
    )


def _describe_pair(
    first: CostedArm,
    second: CostedArm,
    accuracy: Interval,
    cost: Interval,
    ratio: RatioDifference | None,
    verdict: Dominance,
) -> CostPairPart:
    spent, other = float(first.costs.sum()), float(second.costs.sum())
    is_known = not first.is_lower_bound and not second.is_lower_bound
    per_cost = ratio if is_known else None
    return CostPairPart(
        arm=first.name,
        against=second.name,
        difference=float((first.scores - second.scores).mean()),
        low=accuracy.low,
        high=accuracy.high,
        cost_difference=float((first.costs - second.costs).mean()),
        cost_low=cost.low if isfinite(cost.low) else None,
        cost_high=cost.high if isfinite(cost.high) else None,
        cost_ratio=spent / other if other > 0 and is_known else None,
        score_per_cost_difference=per_cost and per_cost.difference,
        standing=verdict,
        score_per_cost_low=per_cost and per_cost.interval.low,
        score_per_cost_high=per_cost and per_cost.interval.high,
    )


def _compare_latencies(first: CostedArm, second: CostedArm, *, seed: int) -> LatencyPart | None:
    common = [task for task in first.seconds if task in second.seconds]
    if len(common) < 2:
        return None
    mine, theirs = (np.array([arm.seconds[task] for task in common]) for arm in (first, second))
    return LatencyPart(
        arm=first.name,
        against=second.name,
        tasks=len(common),
        seconds=compare_latency(mine, theirs, seed=seed),
    )
