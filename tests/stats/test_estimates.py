"""Clusters, trials, ratios, latency, cost, shapes, discrimination and plain means."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coldrun.tasks.judge.token_cost import price_tokens
from coldrun.tasks.stats.aggregate import mean_of_trials, mean_score
from coldrun.tasks.stats.clusters import clustered_mean, describe_trials, resample_clusters
from coldrun.tasks.stats.discrimination import describe_panel
from coldrun.tasks.stats.latency import geometric_mean_ratio, quantile_seconds
from coldrun.tasks.stats.ratios import compare_cost_ratios, describe_cost_ratio
from coldrun.tasks.stats.shapes import Stratum, describe_diversity, interleave, post_stratify


@pytest.mark.oracle
@settings(max_examples=30)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from("abcd")),
        min_size=3,
        max_size=25,
    ).filter(lambda rows: len({cluster for _, cluster in rows}) > 1)
)
def test_clustered_mean_equals_statsmodels(rows: list[tuple[float, str]]) -> None:
    """CR1 is the clustered error of a regression on a constant."""
    from statsmodels.regression.linear_model import OLS

    values, clusters = zip(*rows, strict=True)
    found = clustered_mean(values, clusters)
    groups = np.unique(clusters, return_inverse=True)[1]
    fit = OLS(np.array(values), np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": groups}
    )
    assert found.mean == pytest.approx(float(fit.params[0]))
    assert found.se_cr1 == pytest.approx(float(fit.bse[0]), abs=1e-9)
    assert found.se_plain == pytest.approx(stats.sem(values), abs=1e-12)


def test_clustered_mean_of_one_cluster_has_no_clustered_error() -> None:
    """One repository says nothing of others."""
    found = clustered_mean([1.0, 0.0, 1.0], ["a", "a", "a"])
    assert found.se_cr1 is None
    assert found.half_width is None
    assert found.se_plain is not None
    assert clustered_mean([1.0], ["a"]).se_plain is None
    with pytest.raises(ValueError, match="every task needs a cluster"):
        clustered_mean([1.0], [])


def test_resample_clusters_of_many_repositories_is_seeded() -> None:
    """Beyond six the draws are random, and repeat."""
    clusters = {f"r{i}": [float(i % 2)] * (i + 1) for i in range(9)}
    first = resample_clusters(clusters, seed=1, resamples=500)
    assert first.shape == (500,)
    assert np.array_equal(first, resample_clusters(clusters, seed=1, resamples=500))


def test_describe_trials_of_a_single_trial_raises() -> None:
    """One trial has no variance within."""
    with pytest.raises(ValueError, match="at least two tasks with two trials"):
        describe_trials([[1.0], [0.0]])


def test_describe_cost_ratio_undefined_cases_are_none_or_infinite() -> None:
    """Nothing spent: no score per dollar. No success: infinitely many dollars for one."""
    free = describe_cost_ratio([1.0, 0.0], [0.0, 0.0])
    assert (free.score_per_dollar, free.dollars_per_success) == (None, 0.0)
    useless = describe_cost_ratio([0.0, 0.0], [0.1, 0.2])
    assert (useless.score_per_dollar, useless.dollars_per_success) == (0.0, inf)
    assert describe_cost_ratio([0.0], [0.0]).dollars_per_success is None
    assert describe_cost_ratio([1.0], [0.5]).delta_error is None
    with pytest.raises(ValueError, match="must not be negative"):
        describe_cost_ratio([1.0], [-0.5])
    with pytest.raises(ValueError, match="a score and a cost"):
        describe_cost_ratio([1.0], [])


def test_compare_cost_ratios_agrees_with_scipy() -> None:
    """SciPy's paired percentile bootstrap of the same statistic."""
    generator = np.random.default_rng(3)
    rows = [
        (generator.random(50) < 0.5).astype(float),
        generator.gamma(2.0, 0.02, 50),
        (generator.random(50) < 0.4).astype(float),
        generator.gamma(2.0, 0.03, 50),
    ]
    ours = compare_cost_ratios(*rows, seed=1)
    theirs = stats.bootstrap(
        rows,
        lambda s, c, t, d, axis: s.sum(axis) / c.sum(axis) - t.sum(axis) / d.sum(axis),
        paired=True,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert ours is not None
    width = theirs.high - theirs.low
    assert ours.interval.low == pytest.approx(theirs.low, abs=0.06 * width)
    assert ours.interval.high == pytest.approx(theirs.high, abs=0.06 * width)


def test_compare_cost_ratios_with_a_free_arm_is_undefined() -> None:
    """There is no score per dollar where no dollar was spent, in any resample."""
    assert compare_cost_ratios([1.0, 0.0], [0.0, 0.1], [1.0, 1.0], [0.1, 0.1], seed=0) is None
    with pytest.raises(ValueError, match="the same tasks"):
        compare_cost_ratios([1.0], [0.1], [1.0, 1.0], [0.1, 0.1], seed=0)


def test_latency_of_nothing_is_undefined() -> None:
    """No time, no quantile; a time of zero has no ratio."""
    assert quantile_seconds([], 0.5) is None
    assert quantile_seconds([2.0], 0.95) == 2.0
    assert geometric_mean_ratio([], []) is None
    assert geometric_mean_ratio([0.0], [1.0]) is None
    with pytest.raises(ValueError, match="the same tasks"):
        geometric_mean_ratio([1.0], [1.0, 2.0])


def test_price_tokens_adds_without_drift_and_refuses_a_missing_price() -> None:
    """A tenth of a dollar, ten times a third of it, and a kind without a price."""
    calls = [{"input": 1, "output": 0}] * 100_000
    assert price_tokens(calls, {"input": 0.1}) == 0.01
    assert price_tokens([], {}) == 0.0
    with pytest.raises(ValueError, match="no price for cache_read tokens"):
        price_tokens([{"input": 1, "cache_read": 2}], {"input": 3.0})


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_diversity_equals_scipy_and_stays_between_one_and_all(counts: list[int]) -> None:
    """Effective numbers of shapes."""
    found = describe_diversity(counts)
    if not any(counts):
        assert found is None
        return
    assert found is not None
    positive = [count for count in counts if count]
    assert found.entropy_bits == pytest.approx(stats.entropy(positive, base=2), abs=1e-9)
    assert 1 - 1e-9 <= found.effective_simpson <= found.effective_entropy + 1e-9
    assert found.effective_entropy <= found.shapes + 1e-9
    assert found.top_share >= 1 / found.shapes


def test_post_stratify_of_a_single_task_in_a_stratum_has_no_error() -> None:
    """Its variance is unknown, so the estimate's is."""
    found = post_stratify([Stratum(0.7, [1.0, 0.0]), Stratum(0.3, [1.0])])
    assert found.estimate == pytest.approx(0.65)
    assert found.standard_error is None
    with pytest.raises(ValueError, match="needs a sampled task"):
        post_stratify([Stratum(1.0, [])])
    with pytest.raises(ValueError, match="must sum to 1"):
        post_stratify([Stratum(0.5, [1.0])])


def test_interleave_takes_all_when_there_are_fewer() -> None:
    """Empty groups are passed over."""
    assert interleave({"a": [1, 2], "b": [], "c": [3]}, 9) == (1, 3, 2)


def test_describe_panel_of_one_arm_has_no_pairs() -> None:
    """Power needs two arms, and a panel needs one."""
    found = describe_panel([[1, 0, 1]])
    assert (found.max_discordant, found.discriminative_power) == (0, None)
    assert found.rest_correlations == (None, None, None)
    with pytest.raises(ValueError, match="at least one arm on one task"):
        describe_panel([])


def test_describe_panel_where_six_differ_can_separate_arms() -> None:
    """Six discordant tasks, all one way, are the fewest that reach 0.05 two-sided."""
    assert describe_panel([[1] * 6, [0] * 6]).discriminative_power == 1.0
    assert describe_panel([[1] * 5, [0] * 5]).discriminative_power == 0.0


def test_mean_score_of_missing_tasks_keeps_the_denominator() -> None:
    """A task that failed or was never answered counts 0 in n."""
    assert mean_score({"a": 1.0, "b": None}, ["a", "b", "c", "d"]) == 0.25
    assert mean_score({}, []) is None


def test_mean_of_trials_counts_failed_trials_as_zero() -> None:
    """Two trials, one of which died, are half a point at most."""
    assert mean_of_trials([1.0, None]) == 0.5
    with pytest.raises(ValueError, match="at least one trial"):
        mean_of_trials([])
