"""Clusters, verifiers, ratios, latencies, dominance and bisection against slow definitions."""

from __future__ import annotations

from itertools import combinations, product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coldrun.tasks.stats.clusters import cluster_sign_flip_p, clustered_mean
from coldrun.tasks.stats.cost_axis import (
    compare_cost_ratios,
    compare_latency,
    describe_cost_ratio,
    judge_dominance,
    mark_points,
    quantile_seconds,
    share_on_frontier,
)
from coldrun.tasks.stats.decomposition import collapse_equal, next_points
from coldrun.tasks.stats.intervals import Interval
from coldrun.tasks.stats.paired import sign_flip_p
from coldrun.tasks.stats.stability import mean_verified_accuracy, pass_at_k, verified_accuracy

CHANCE = st.sampled_from([0.0, 0.2, 0.5, 1.0])
INTERVAL = st.tuples(st.integers(-3, 3), st.integers(-3, 3)).map(
    lambda ends: Interval(float(min(ends)), float(max(ends)))
)
CLUSTERED = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from("abcd")), min_size=3, max_size=25
).filter(lambda rows: len({cluster for _, cluster in rows}) > 1)


@given(rows=CLUSTERED)
def test_clustered_mean_equals_the_sum_over_pairs_of_one_cluster(
    rows: list[tuple[float, str]],
) -> None:
    """Variance and covariances within clusters, pair by pair, and the plain standard error."""
    values, clusters = zip(*rows, strict=True)
    n, count = len(values), len(set(clusters))
    mean = fmean(values)
    covered = sum(
        (values[i] - mean) * (values[j] - mean)
        for i, j in product(range(n), repeat=2)
        if clusters[i] == clusters[j]
    )
    found = clustered_mean(np.array(values), clusters)
    assert found.se_clustered == pytest.approx(
        (max(0.0, covered) * count / (count - 1)) ** 0.5 / n, abs=1e-7
    )
    assert found.se_plain == pytest.approx(stats.sem(values), abs=1e-12)
    if found.design_effect is not None:
        assert found.design_effect * stats.sem(values) ** 2 == pytest.approx(
            covered * count / (count - 1) / n**2, abs=1e-9
        )


def test_clustered_mean_of_one_cluster_has_no_clustered_error() -> None:
    """One repository says nothing of others."""
    found = clustered_mean(np.array([1.0, 0.0, 1.0]), ["a", "a", "a"])
    assert (found.se_clustered, found.half_width, found.design_effect) == (None, None, None)
    assert found.se_plain is not None
    assert clustered_mean(np.array([1.0]), ["a"]).se_plain is None
    with pytest.raises(ValueError, match="every task needs a cluster"):
        clustered_mean(np.array([1.0]), [])


def test_clusters_of_one_task_each_are_plain_tasks() -> None:
    """The design effect is 1, and flipping clusters is flipping tasks."""
    values = np.array([1.0, 0.5, -0.25, 0.75, 0.0, 0.5, 1.0])
    alone = [str(place) for place in range(len(values))]
    assert clustered_mean(values, alone).design_effect == pytest.approx(1.0)
    assert cluster_sign_flip_p(values, alone, seed=0) == sign_flip_p(values, seed=0)
    assert cluster_sign_flip_p(values, ["a"] * 7, seed=0) == 0.5


@settings(max_examples=60)
@given(right=st.integers(0, 3), wrong=st.integers(0, 3), true=CHANCE, false=CHANCE)
def test_verified_accuracy_equals_enumeration(
    right: int, wrong: int, true: float, false: float
) -> None:
    """Every set of samples that the verifier takes, one of them drawn."""
    samples = [1] * right + [0] * wrong
    expected = 0.0
    for taken in product((True, False), repeat=len(samples)):
        chance = 1.0
        for is_right, is_taken in zip(samples, taken, strict=True):
            accept = true if is_right else false
            chance *= accept if is_taken else 1 - accept
        chosen = [is_right for is_right, is_taken in zip(samples, taken, strict=True) if is_taken]
        expected += chance * (fmean(chosen) if chosen else 0.0)
    found = verified_accuracy(right, right + wrong, true_accept=true, false_accept=false)
    assert found == pytest.approx(expected)


@given(
    successes=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    k=st.integers(1, 5),
    true=CHANCE,
    false=CHANCE,
)
def test_mean_verified_accuracy_equals_enumeration(
    successes: list[int], k: int, true: float, false: float
) -> None:
    """Over every subset of k of five stored trials; without errors it is coverage."""
    expected = fmean(
        fmean(
            verified_accuracy(sum(subset), k, true_accept=true, false_accept=false)
            for subset in combinations([1] * count + [0] * (5 - count), k)
        )
        for count in successes
    )
    found = mean_verified_accuracy(successes, 5, k, true_accept=true, false_accept=false)
    assert found == pytest.approx(expected)
    covered = mean_verified_accuracy(successes, 5, k, true_accept=1, false_accept=0)
    assert covered == pytest.approx(fmean(pass_at_k(5, count, k) for count in successes))
    with pytest.raises(ValueError, match="from 1 to the 5 trials"):
        mean_verified_accuracy(successes, 5, 6, true_accept=true, false_accept=false)


def test_describe_cost_ratio_undefined_cases_are_none() -> None:
    """Nothing spent: no score per cost. No success: no cost of one."""
    free = describe_cost_ratio(np.array([1.0, 0.0]), np.zeros(2))
    assert (free.score_per_cost, free.cost_per_success) == (None, 0.0)
    useless = describe_cost_ratio(np.zeros(2), np.array([0.1, 0.2]))
    assert (useless.score_per_cost, useless.cost_per_success) == (0.0, None)
    with pytest.raises(ValueError, match="must not be negative"):
        describe_cost_ratio(np.array([1.0]), np.array([-0.5]))
    with pytest.raises(ValueError, match="a score and a cost"):
        describe_cost_ratio(np.array([1.0]), np.array([]))


def test_compare_cost_ratios_with_a_free_arm_is_undefined() -> None:
    """There is no score per cost where nothing was spent, in any resample."""
    scores, costs = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[0.0, 0.1], [0.1, 0.1]])
    assert compare_cost_ratios(scores, costs, [(0, 1)], seed=0) == [None]


def test_compare_latency_agrees_with_scipy() -> None:
    """Differences of medians by SciPy's paired percentile bootstrap, and the ratio by hand."""
    generator = np.random.default_rng(7)
    first, second = generator.gamma(2.0, 1.0, 60), generator.gamma(2.0, 0.5, 60)
    ours = compare_latency(first, second, seed=1)
    theirs = stats.bootstrap(
        (first, second),
        lambda a, b, axis: np.median(a, axis) - np.median(b, axis),
        paired=True,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.p50 == np.median(first) - np.median(second)
    assert ours.p50_interval.low == pytest.approx(theirs.low, abs=0.08 * width)
    assert ours.p50_interval.high == pytest.approx(theirs.high, abs=0.08 * width)
    assert ours.p95 == np.quantile(first, 0.95) - np.quantile(second, 0.95)
    assert ours.p95_interval.low <= ours.p95 <= ours.p95_interval.high
    assert ours.ratio == pytest.approx(stats.gmean(first / second))
    assert ours.ratio_interval is not None
    assert ours.ratio_interval.low < ours.ratio < ours.ratio_interval.high


def test_latency_of_nothing_is_undefined() -> None:
    """No time, no quantile; a time of zero has no ratio."""
    assert quantile_seconds([], 0.5) is None
    assert quantile_seconds([2.0], 0.95) == 2.0
    found = compare_latency(np.array([0.0, 2.0]), np.array([1.0, 1.0]), seed=0)
    assert (found.p50, found.ratio, found.ratio_interval) == (0.0, None, None)
    for size in (1, 0):
        with pytest.raises(ValueError, match="the same tasks"):
            compare_latency(np.zeros(0), np.zeros(size), seed=0)


@given(accuracy=INTERVAL, cost=INTERVAL, margins=st.tuples(st.integers(0, 1), st.integers(0, 1)))
def test_judge_dominance_mirrors_when_the_arms_are_swapped(
    accuracy: Interval, cost: Interval, margins: tuple[int, int]
) -> None:
    """A against B says the same as B against A."""
    mirror = {"dominates": "dominated", "dominated": "dominates"}
    one = judge_dominance(accuracy, cost, accuracy_margin=margins[0], cost_margin=margins[1])
    other = judge_dominance(
        Interval(-accuracy.high, -accuracy.low),
        Interval(-cost.high, -cost.low),
        accuracy_margin=margins[0],
        cost_margin=margins[1],
    )
    assert other == mirror.get(one, one)


def test_mark_points_drops_only_what_is_shown_to_be_dominated() -> None:
    """Unresolved points stay, and are drawn hollow."""
    found = mark_points(
        ["a", "b", "c", "d"],
        {
            ("a", "b"): "dominates",
            ("a", "c"): "trade_off",
            ("c", "b"): "unresolved",
            ("d", "a"): "unresolved",
            ("c", "d"): "trade_off",
        },
    )
    assert found == {"a": "unresolved", "b": "dominated", "c": "unresolved", "d": "unresolved"}
    pair = {("a", "b"): "dominated"}
    assert mark_points(["a", "b"], pair) == {"a": "dominated", "b": "efficient"}


@settings(max_examples=20)
@given(
    rows=st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.3, 1.0])] * 6), min_size=1, max_size=4)
)
def test_share_on_frontier_equals_enumeration(rows: list[tuple[float, ...]]) -> None:
    """Every joint draw of tasks, three arms, both axes, ties included."""
    table = np.round(np.array(rows) * 10).astype(int)
    n = len(table)
    on_frontier = np.zeros(3)
    for drawn in product(range(n), repeat=n):
        points = table[list(drawn)].sum(axis=0).reshape(2, 3).T  # accuracy and cost by arm
        for arm, (accuracy, cost) in enumerate(points):
            on_frontier[arm] += not any(
                a >= accuracy and c <= cost and (a > accuracy or c < cost) for a, c in points
            )
    found = share_on_frontier(np.array(rows)[:, :3], np.array(rows)[:, 3:], seed=0)
    assert found == pytest.approx(on_frontier / n**n)


def test_collapse_equal_groups_neighbours_only() -> None:
    """A tree that comes back later is another point: something lay between."""
    assert collapse_equal(["a", "a", "b", "a"]) == ((0, 1), (2,), (3,))
    assert collapse_equal([]) == ()


@given(
    changes=st.integers(2, 12).flatmap(
        lambda steps: st.tuples(st.just(steps), st.sets(st.integers(1, steps), max_size=4))
    )
)
def test_bisection_finds_every_change_that_is_not_undone(
    changes: tuple[int, set[int]],
) -> None:
    """Both neighbours of every change are run or are ends, in few rounds."""
    steps, changed = changes
    states = [sum(change <= point for change in changed) for point in range(steps + 1)]
    known = {0: states[0], steps: states[-1]}
    rounds = 0
    while points := next_points(steps + 1, known):
        assert not known.keys() & set(points)
        known.update({point: states[point] for point in points})
        rounds += 1
    assert all({change - 1, change} <= known.keys() for change in changed)
    assert rounds <= (steps - 1).bit_length()


def test_next_points_with_a_noise_floor_ignores_small_differences() -> None:
    """Vectors that differ within the floor are not split."""
    known = {0: 10, 8: 11}
    assert next_points(9, known) == (4,)
    assert next_points(9, known, lambda one, other: abs(one - other) > 1) == ()
    with pytest.raises(ValueError, match="point 8 of 9 must be measured"):
        next_points(9, {0: 10})
