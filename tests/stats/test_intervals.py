"""Intervals and the bootstrap against SciPy and statsmodels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coldrun.tasks.stats.bootstrap import (
    bca_constants,
    iterate_draws,
    percentile_limits,
    resample_means,
)
from coldrun.tasks.stats.intervals import (
    Interval,
    bonett_price_interval,
    mean_interval,
    mean_intervals,
    newcombe_independent_interval,
    paired_interval,
    population_interval,
    wilson_interval,
)
from coldrun.tasks.stats.noise import upper_flip_rate

RATES = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(rate=RATES, confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_rate_intervals_equal_scipy(rate: tuple[int, int], confidence: float) -> None:
    """Wilson on both sides, and the exact upper limit."""
    count, n = rate
    theirs = stats.binomtest(count, n).proportion_ci(confidence, method="wilson")
    found = wilson_interval(count, n, confidence)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    upper = stats.binomtest(count, n, alternative="less").proportion_ci(confidence, method="exact")
    assert upper_flip_rate(count, n, confidence=confidence) == pytest.approx(upper.high, abs=1e-9)


@given(rate=RATES)
def test_wilson_at_the_ends_is_forced(rate: tuple[int, int]) -> None:
    """0 and n successes give exactly 0 and 1, and the estimate always lies inside."""
    count, n = rate
    found = wilson_interval(count, n)
    assert (found.low == 0.0) == (count == 0)
    assert (found.high == 1.0) == (count == n)
    assert found.low <= count / n <= found.high


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: newcombe_independent_interval((0, 0), (1, 2)), "on each side"),
    (lambda: bonett_price_interval(0, 0, 0), "a paired difference needs tasks"),
    (lambda: bonett_price_interval(5, 0, 4), "a paired difference needs tasks"),
    (lambda: bonett_price_interval(-1, 0, 4), "a paired difference needs tasks"),
    (lambda: wilson_interval(3, 2), "count 3, n 2"),
    (lambda: upper_flip_rate(3, 2), "between 0 and 2, got 3"),
    (lambda: mean_interval([], seed=0), "at least one task and finite"),
    (lambda: mean_interval([0.1, float("nan")], seed=0), "at least one task and finite"),
    (lambda: resample_means(np.empty((0, 2)), seed=0), "at least one task"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_interval_of_nothing_or_of_impossible_counts_raises(
    call: Callable[[], object], message: str
) -> None:
    """No task, more successes than tasks, or an undefined value; a rate of nothing is unknown."""
    with pytest.raises(ValueError, match=message):
        call()
    assert wilson_interval(0, 0) == Interval(0.0, 1.0)


@given(cells=st.tuples(*[st.integers(0, 12)] * 3).filter(lambda cells: sum(cells) > 0))
def test_bonett_price_mirrors_when_the_arms_are_swapped(cells: tuple[int, int, int]) -> None:
    """Swapping the arms turns the interval round, within [-1, 1]."""
    up, down, same = cells
    n = up + down + same
    one, other = bonett_price_interval(up, down, n), bonett_price_interval(down, up, n)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-12)
    assert -1 <= one.low < one.high <= 1
    differences = np.array([1.0] * up + [-1.0] * down + [0.0] * same)
    assert paired_interval(differences, seed=0) == one


def test_mean_interval_agrees_with_scipy_bca() -> None:
    """With the same generator the draws are the same, and so are the limits."""
    values = np.random.default_rng(4).beta(0.4, 0.6, size=180)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(8)
    ).confidence_interval
    found = mean_interval(values, seed=9)
    width = theirs.high - theirs.low
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.04 * width)


def test_mean_interval_of_constant_values_has_no_width() -> None:
    """BCa is 0/0 there."""
    assert mean_interval([0.25] * 8, seed=0) == Interval(0.25, 0.25)
    assert mean_interval([0.5], seed=0) == Interval(0.5, 0.5)


@settings(max_examples=20)
@given(
    rows=st.lists(
        st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3), min_size=7, max_size=20
    )
)
def test_mean_intervals_equal_one_by_one_and_pairs_equal_differences(
    rows: list[list[float]],
) -> None:
    """A shared draw changes no number, and a pair is the interval of its differences."""
    columns = np.array(rows, dtype=np.float64)
    together = mean_intervals(columns, seed=3, pairs=[(0, 1)], resamples=499)
    alone = [mean_intervals(column[:, None], seed=3, resamples=499)[0] for column in columns.T]
    assert list(together[:3]) == alone
    paired = columns[:, [0]] - columns[:, [1]]
    (difference,) = mean_intervals(paired, seed=3, resamples=499)
    assert (together[3].low, together[3].high) == pytest.approx(
        (difference.low, difference.high), abs=0.02
    )


def test_mean_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    """Of 300 samples of 60 tasks, 90 to 99 % of the 95 % intervals hold the true mean."""
    generator = np.random.default_rng(5)
    samples = generator.beta(0.5, 1.0, size=(300, 60))
    found = [
        mean_intervals(sample[:, None], seed=i, resamples=999)[0]
        for i, sample in enumerate(samples)
    ]
    covered = np.mean([interval.low <= 1 / 3 <= interval.high for interval in found])
    assert 0.90 <= covered <= 0.99


def test_resample_means_equals_the_mean_of_the_drawn_tasks() -> None:
    """The sparse product is plain indexing, block by block."""
    columns = np.random.default_rng(2).random((30, 3))
    drawn = np.concatenate(list(iterate_draws(30, seed=6, resamples=9000)))
    assert drawn.shape == (9000, 30)
    expected = columns[drawn].mean(axis=1)
    assert resample_means(columns, seed=6, resamples=9000) == pytest.approx(expected, abs=1e-12)


def test_bca_constants_with_all_means_on_one_side_keep_the_percentile_tails() -> None:
    """A z0 of infinity would make NaN limits, as SciPy has them."""
    constants = bca_constants(np.array([0.0, 1.0]), np.array([0.9, 0.95]))
    assert (constants.alpha_low, constants.alpha_high) == pytest.approx((0.025, 0.975))
    with pytest.raises(ValueError, match="all values are equal"):
        bca_constants(np.ones(3), np.ones(9))


def test_percentile_limits_are_values_that_occur() -> None:
    """Inverse CDF, no interpolation."""
    assert percentile_limits(np.arange(1, 101) / 100) == (0.03, 0.98)


@pytest.mark.parametrize("drawn", [30, 71, 100, 200])
@pytest.mark.parametrize(
    ("population", "found"), [(358, 252), (291, 212), (1235, 751), (1235, 174)]
)
def test_population_interval_covers_the_mean_of_all_as_often_as_it_says(
    population: int, found: int, drawn: int
) -> None:
    """Exactly, by the hypergeometric distribution of draws without replacement."""
    draws = stats.hypergeom(population, found, drawn)
    covering = [
        count
        for count in range(drawn + 1)
        if (each := population_interval(count / drawn, count, drawn, population, (0.0, 1.0))).low
        <= found / population
        <= each.high
    ]
    assert 0.93 <= draws.pmf(covering).sum() <= 0.97


def test_population_interval_of_everything_is_what_was_found() -> None:
    """Nothing is left to guess; fractions narrow the interval for tasks to come."""
    assert population_interval(0.4, 4, 10, 10, (0.2, 0.7)) == Interval(0.4, 0.4)
    assert population_interval(0.4, None, 10, 10, (0.2, 0.7)) == Interval(0.4, 0.4)
    half = population_interval(0.5, None, 50, 100, (0.4, 0.6))
    assert 0.4 < half.low < 0.5 < half.high < 0.6
    assert population_interval(1.0, 9, 9, 12, (0.7, 1.0)).low >= 9 / 12
