"""Configurations by accuracy and cost: paired differences on both axes, and who is efficient.

Every interval is over one shared draw of tasks (counts of ups and downs have Bonett–Price, as in
the gate's table), and simultaneous over the rivals of one arm, so that one with many rivals is not
dropped by chance. The order is claimed where the intervals support it, and nowhere else.

Source: Kapoor et al. 2024 (arXiv:2407.01502).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.stats.intervals import Interval, mean_intervals
from coldrun.tasks.stats.paired_intervals import paired_interval
from coldrun.tasks.stats.pareto import (
    Dominance,
    Standing,
    bootstrap_frontier,
    judge_dominance,
    mark_points,
)
from coldrun.tasks.stats.ratios import RatioDifference, compare_all_cost_ratios

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostedArm:
    """One configuration: per task its score and what the answer cost, trials averaged.

    `is_lower_bound`: some attempts did not say what they used, so it may have cost more.
    `noise_tasks` is the band within which two runs of it differ, 0 where it is not known.
    """

    name: str
    scores: FloatArray
    costs: FloatArray
    is_lower_bound: bool = False
    noise_tasks: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPair:
    """Two configurations on the same tasks, first minus second.

    `cost` reaches to infinity on the side on which a lower bound says nothing, and on both with one
    task. `cost_ratio` is of
    the sums, None where the second cost nothing. `score_per_cost` compares the ratios of sums.
    """

    first: str
    second: str
    difference: float
    accuracy: Interval
    cost_difference: float
    cost: Interval
    cost_ratio: float | None
    score_per_cost: RatioDifference | None
    verdict: Dominance


@dataclass(frozen=True, slots=True, kw_only=True)
class CostComparison:
    """All pairs, and by arm its standing and its share of resamples on the frontier.

    The shares are None where an arm's cost is a lower bound. `confidence` is that of each interval.
    """

    pairs: tuple[CostPair, ...]
    standings: dict[str, Standing]
    on_frontier: dict[str, float] | None
    confidence: float


def compare_costs(
    arms: Sequence[CostedArm],
    *,
    judged: Collection[str] = (),
    margin_tasks: float = 1.0,
    seed: int,
) -> CostComparison | None:
    """Compare every two configurations.

    Args:
        arms: On the same tasks in the same order, costs in one unit, in the configuration's order.
        judged: Names that come first in a pair; of others the later one comes first.
        margin_tasks: By how many tasks an arm may be worse and still count as good; at least one,
            and at least the noise of both.
        seed: Of the resampling.

    Returns:
        None with fewer than two arms.
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
    ratios = compare_all_cost_ratios(scores, costs, places, seed=seed)
    pairs = tuple(
        _pair(
            first,
            second,
            cost,
            ratio,
            margin=max(1.0, margin_tasks, first.noise_tasks, second.noise_tasks),
            confidence=confidence,
            seed=seed,
        )
        for (first, second), cost, ratio in zip(ordered, intervals, ratios, strict=True)
    )
    names = [arm.name for arm in arms]
    on_frontier = None
    if not any(arm.is_lower_bound for arm in arms):
        on_frontier = bootstrap_frontier(
            {arm.name: arm.scores for arm in arms},
            {arm.name: arm.costs for arm in arms},
            seed=seed,
        ).on_frontier
    return CostComparison(
        pairs=pairs,
        standings=mark_points(names, {(pair.first, pair.second): pair.verdict for pair in pairs}),
        on_frontier=on_frontier,
        confidence=confidence,
    )


def _pair(
    first: CostedArm,
    second: CostedArm,
    cost: Interval,
    score_per_cost: RatioDifference | None,
    *,
    margin: float,
    confidence: float,
    seed: int,
) -> CostPair:
    differences = first.scores - second.scores
    accuracy = paired_interval(differences, seed, confidence=confidence)
    is_alone = len(differences) == 1
    cost = Interval(
        -inf if second.is_lower_bound or is_alone else cost.low,
        inf if first.is_lower_bound or is_alone else cost.high,
    )
    spent, other = float(first.costs.sum()), float(second.costs.sum())
    is_known = not first.is_lower_bound and not second.is_lower_bound
    return CostPair(
        first=first.name,
        second=second.name,
        difference=float(differences.mean()),
        accuracy=accuracy,
        cost_difference=float((first.costs - second.costs).mean()),
        cost=cost,
        cost_ratio=spent / other if other > 0 and is_known else None,
        score_per_cost=score_per_cost if is_known else None,
        verdict=judge_dominance(
            accuracy, cost, accuracy_margin=margin / len(differences), cost_margin=0.0
        ),
    )
