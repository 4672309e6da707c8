"""Tuning budgets, verifiers, retries and bars."""

from __future__ import annotations

from itertools import combinations, product
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coldrun.tasks.stats.bars import compare_with_bar
from coldrun.tasks.stats.budget import expected_best, expected_best_with_replacement
from coldrun.tasks.stats.retry_once import RetryCounts, account_retries, expect_any_of_attempts
from coldrun.tasks.stats.verifier import best_of_k, best_of_stored

VALUES = st.lists(st.sampled_from([0.1, 0.4, 0.4, 0.7, 0.9]), min_size=1, max_size=5)
CHANCE = st.sampled_from([0.0, 0.2, 0.5, 1.0])


@given(values=VALUES, data=st.data())
def test_expected_best_equals_enumeration(values: list[float], data: st.DataObject) -> None:
    """Without replacement over subsets, with it over tuples; the latter never exceeds it."""
    n = data.draw(st.integers(1, len(values)))
    subsets = fmean(max(subset) for subset in combinations(values, n))
    tuples = fmean(max(drawn) for drawn in product(values, repeat=n))
    assert expected_best(values, n) == pytest.approx(subsets)
    assert expected_best_with_replacement(values, n) == pytest.approx(tuples)
    assert tuples <= subsets + 1e-12


def test_expected_best_beyond_the_trials_raises() -> None:
    """The data say nothing of more trials than were run."""
    for function in (expected_best, expected_best_with_replacement):
        with pytest.raises(ValueError, match="from 1 to the 2 trials run, got 3"):
            function([0.1, 0.2], 3)


@settings(max_examples=60)
@given(p=CHANCE, true_accept=CHANCE, false_accept=CHANCE, k=st.integers(1, 4))
def test_best_of_k_equals_enumeration(
    p: float, true_accept: float, false_accept: float, k: int
) -> None:
    """Every sequence of right or wrong, taken or not."""
    kinds = {
        (1, 1): p * true_accept,
        (1, 0): p * (1 - true_accept),
        (0, 1): (1 - p) * false_accept,
        (0, 0): (1 - p) * (1 - false_accept),
    }
    abstaining = falling_back = samples = coverage = 0.0
    for sequence in product(kinds, repeat=k):
        chance = 1.0
        for kind in sequence:
            chance *= kinds[kind]
        taken = [place for place, (_, is_taken) in enumerate(sequence) if is_taken]
        right = [is_right for is_right, _ in sequence]
        abstaining += chance * (right[taken[0]] if taken else 0)
        falling_back += chance * (right[taken[0]] if taken else fmean(right))
        samples += chance * (taken[0] + 1 if taken else k)
        coverage += chance * max(right)
    found = best_of_k(p, true_accept=true_accept, false_accept=false_accept, k=k)
    assert found.accuracy_abstaining == pytest.approx(abstaining)
    assert found.accuracy_falling_back == pytest.approx(falling_back)
    assert found.expected_samples == pytest.approx(samples)
    assert found.coverage == pytest.approx(coverage)


def test_best_of_k_of_impossible_inputs_raises() -> None:
    """A chance above one, or no sample."""
    for p, k in ((1.2, 1), (0.5, 0)):
        with pytest.raises(ValueError, match="probabilities in"):
            best_of_k(p, true_accept=0.9, false_accept=0.1, k=k)


@given(
    samples=st.lists(
        st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=6,
    ),
    data=st.data(),
)
def test_best_of_stored_equals_enumeration(
    samples: list[tuple[float, float]], data: st.DataObject
) -> None:
    """Every subset of k, ties for the best score broken at random."""
    k = data.draw(st.integers(1, len(samples)))
    expected = fmean(
        fmean(right for score, right in subset if score == max(s for s, _ in subset))
        for subset in combinations(samples, k)
    )
    scores, correct = zip(*samples, strict=True)
    assert best_of_stored(scores, correct, k) == pytest.approx(expected)
    with pytest.raises(ValueError, match="stored samples"):
        best_of_stored(scores, correct, len(samples) + 1)


def test_account_retries_without_failures_or_firings_leaves_rates_undefined() -> None:
    """A rate without a base is None, not 0."""
    found = account_retries(
        RetryCounts(
            n=3,
            first_pass=3,
            fired_on_fail=0,
            fired_on_pass=0,
            fixed=0,
            broke=0,
            cost_first_usd=0.1,
            cost_retry_usd=0.1,
        )
    )
    assert (found.signal_recall, found.signal_precision) == (None, None)
    assert found.cost_per_net_fix_usd is None


def test_account_retries_of_contradicting_counts_raises() -> None:
    """More fixed than fired."""
    with pytest.raises(ValueError, match="contradict"):
        account_retries(
            RetryCounts(
                n=5,
                first_pass=2,
                fired_on_fail=1,
                fired_on_pass=0,
                fixed=2,
                broke=0,
                cost_first_usd=0.1,
                cost_retry_usd=0.1,
            )
        )


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8), attempts=st.integers(1, 4))
def test_expected_attempts_on_the_mean_overstate(p: list[float], attempts: int) -> None:
    """Jensen: the formula is concave in p."""
    per_task = expect_any_of_attempts(p, attempts=attempts)
    assert per_task <= expect_any_of_attempts([fmean(p)], attempts=attempts) + 1e-9


@given(n=st.integers(1, 120), data=st.data(), bar=st.sampled_from([0.1, 0.35, 0.5, 0.9]))
def test_compare_with_bar_equals_scipy(n: int, data: st.DataObject, bar: float) -> None:
    """Both tails; meeting the lower rule implies meeting the point rule."""
    count = data.draw(st.integers(0, n))
    found = compare_with_bar(count, n, bar)
    assert found is not None
    below = stats.binomtest(count, n, bar, alternative="less").pvalue
    above = stats.binomtest(count, n, bar, alternative="greater").pvalue
    assert (found.p_below, found.p_above) == pytest.approx((below, above), abs=1e-10)
    assert found.is_met("point") or not found.is_met("lower")


def test_compare_with_bar_without_tasks_is_undefined() -> None:
    """No task, no rate."""
    assert compare_with_bar(0, 0, 0.35) is None
