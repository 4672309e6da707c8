"""Noise floor, drift and stability."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.stats.noise import (
    flip_probabilities,
    judge_drift,
    net_band,
    net_change,
    pool_noise_floor,
)
from coldrun.tasks.stats.stability import (
    answer_agreement,
    outcome_stability,
    pass_at_k,
    pass_hat_k,
)

OUTCOMES = st.integers(2, 5).flatmap(
    lambda runs: st.lists(
        st.lists(st.sampled_from([0.0, 1.0]), min_size=runs, max_size=runs),
        min_size=1,
        max_size=12,
    )
)


@given(trials=OUTCOMES)
def test_noise_floor_equals_the_mean_over_pairs_of_runs(trials: list[list[float]]) -> None:
    """The flip rate is the mean share of tasks that differ between two runs."""
    table = np.array(trials).T
    floor = pool_noise_floor([table])
    assert floor is not None
    pairs = [float((a != b).mean()) for a, b in combinations(table, 2)]
    assert floor.flip_rate == pytest.approx(fmean(pairs))
    assert floor.flip_rate_upper > 0
    assert 0 <= floor.band_tasks <= floor.n


@given(n=st.integers(1, 30), rate=st.sampled_from([0.0, 0.01, 0.1, 0.5]))
def test_net_band_is_the_smallest_that_holds_nineteen_of_twenty(n: int, rate: float) -> None:
    """Each task up or down with half the rate, summed outcome by outcome."""
    band = net_band(n, rate)
    sizes = np.abs(np.arange(-n, n + 1))
    masses = net_change(n, rate / 2, rate / 2)
    assert masses[sizes <= band].sum() >= 0.95 - 1e-9
    assert band == 0 or masses[sizes < band].sum() < 0.95


@pytest.mark.parametrize(
    ("up", "down", "flip_rate", "verdict"),
    [
        (1, 0, 0.0, "DRIFT"),
        (0, 0, 0.0, "NO_DRIFT"),
        (1, 0, 1 / 71, "NO_DRIFT"),
        (0, 6, 0.2, "DRIFT"),
    ],
)
def test_drift_is_any_flip_beyond_the_floor_and_any_clear_net_change(
    up: int, down: int, flip_rate: float, verdict: str
) -> None:
    """Six losses and no gain alarm even where flips are common."""
    assert judge_drift("grep", up=up, down=down, n=71, flip_rate=flip_rate).verdict == verdict


@given(
    trials=st.lists(
        st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=2, max_size=4),
        min_size=1,
        max_size=6,
    )
)
def test_answer_agreement_equals_all_pairs(trials: list[list[list[str]]]) -> None:
    """Pair by pair, as sets."""
    found = answer_agreement(trials)
    exact = [fmean(set(a) == set(b) for a, b in combinations(row, 2)) for row in trials]
    assert found["answer_agreement"] == pytest.approx(fmean(exact))
    assert found["answer_agreement"] <= found["modal_share"] <= 1


def test_stability_of_single_trials_is_unknown_and_of_a_constant_answer_perfect() -> None:
    """Which is why the nulls' stability is printed beside the arm's."""
    assert answer_agreement([[["a"]], [["b"]]]) == {}
    assert outcome_stability(np.array([[1.0], [0.0]])) == {}
    found = answer_agreement([[["a"], ["a"]], [["a"], ["a", "a"]]])
    assert (found["answer_agreement"], found["modal_share"]) == (1.0, 1.0)


@given(trials=OUTCOMES)
def test_outcome_stability_equals_its_parts(trials: list[list[float]]) -> None:
    """Agreement is one less the mean flip probability; pass^1 is the mean."""
    table = np.array(trials)
    found = outcome_stability(table)
    assert found["outcome_agreement"] == pytest.approx(1 - flip_probabilities(table.T).mean())
    assert found["pass^1"] == pytest.approx(table.mean())


@given(n=st.integers(1, 8), data=st.data())
def test_pass_at_k_and_pass_hat_k_equal_enumeration(n: int, data: st.DataObject) -> None:
    """Over all subsets of k trials."""
    successes, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    trials = [1] * successes + [0] * (n - successes)
    subsets = list(combinations(trials, k))
    assert pass_at_k(n, successes, k) == pytest.approx(fmean(max(s) for s in subsets))
    assert pass_hat_k(n, successes, k) == pytest.approx(fmean(min(s) for s in subsets))


def test_pass_at_k_beyond_the_trials_raises() -> None:
    """Nothing is known of more trials than were run."""
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="k must be from 1 to the 3 trials"):
            function(3, 1, 4)
        with pytest.raises(ValueError, match="impossible"):
            function(3, 4, 1)
