"""Noise floor, drift and stability."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.stats.drift import difference_in_differences, judge_drift
from coldrun.tasks.stats.noise import (
    estimate_noise_floor,
    flip_probabilities,
    identical_rerun_probability,
    judge_against_noise,
    spread_of_totals,
)
from coldrun.tasks.stats.passk import pass_at_k, pass_hat_k
from coldrun.tasks.stats.stability import (
    answer_agreement,
    fleiss_kappa,
    jaccard,
    outcome_stability,
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
    """Expected discordants are the mean number of tasks that differ between two runs."""
    table = np.array(trials).T
    floor = estimate_noise_floor(table)
    assert floor is not None
    pairs = [float((a != b).sum()) for a, b in combinations(table, 2)]
    assert floor.expected_discordant == pytest.approx(fmean(pairs))
    assert floor.net_sd**2 == pytest.approx(floor.expected_discordant)
    assert floor.flip_rate_upper > 0
    assert floor.band >= 0


def test_noise_floor_of_one_run_is_unknown() -> None:
    """A single run says nothing of noise, and that is said instead of zero."""
    assert estimate_noise_floor(np.ones((1, 5))) is None
    assert estimate_noise_floor(np.ones((2, 0))) is None
    assert spread_of_totals([37]) is None
    with pytest.raises(ValueError, match="at least two runs"):
        flip_probabilities([1, 0], 1)


def test_noise_floor_of_a_shock_shows_in_the_totals_only() -> None:
    """When a whole run falls over, the spread of totals is far above the spread of flips."""
    floor = estimate_noise_floor(np.array([[1.0] * 40, [1.0] * 40, [0.0] * 40, [1.0] * 40]))
    assert floor is not None
    assert floor.total_sd == pytest.approx(20.0)
    assert floor.net_sd < 6


def test_judge_against_noise_needs_both_conditions() -> None:
    """Beyond the band but not significant, and significant but inside the band, are noise."""
    assert judge_against_noise(up=5, down=0, n=71, flip_rate_upper=0.065).verdict == "NOISE"
    assert judge_against_noise(up=8, down=1, n=400, flip_rate_upper=0.2).verdict == "NOISE"
    assert judge_against_noise(up=8, down=1, n=71, flip_rate_upper=0.065).verdict == "PASS"


def test_identical_rerun_probability_at_the_ends() -> None:
    """Certain without noise, impossible when every task flips."""
    assert identical_rerun_probability(71, 0.0) == 1.0
    assert identical_rerun_probability(71, 1.0) == 0.0


def test_drift_of_a_deterministic_control_is_any_flip() -> None:
    """A control that cannot flip has drifted once it does."""
    assert judge_drift("bm25", up=1, down=0, n=71, flip_rate=0.0).verdict == "DRIFT"
    assert judge_drift("bm25", up=0, down=0, n=71, flip_rate=0.0).verdict == "NO_DRIFT"


def test_drift_within_the_floor_is_none() -> None:
    """One flip of 71 at a floor of one in 71 is what two runs do."""
    assert judge_drift("bm25", up=1, down=0, n=71, flip_rate=1 / 71).verdict == "NO_DRIFT"


def test_drift_of_a_net_change_is_caught_without_many_flips() -> None:
    """Six losses and no gain alarm even where flips are common."""
    found = judge_drift("bm25", up=0, down=6, n=71, flip_rate=0.2)
    assert found.flips_p > 0.05
    assert found.verdict == "DRIFT"


def test_difference_in_differences_of_equal_changes_is_nothing() -> None:
    """What the control did too is taken out."""
    found = difference_in_differences(
        tool_before=[0, 0, 1],
        tool_after=[1, 0, 1],
        control_before=[0, 1, 1],
        control_after=[1, 1, 1],
        seed=0,
    )
    assert (found.total, found.p, found.per_task) == (0.0, 1.0, (0.0, 0.0, 0.0))


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
    assert found is not None
    exact = [fmean(set(a) == set(b) for a, b in combinations(row, 2)) for row in trials]
    overlap = [fmean(jaccard(a, b) for a, b in combinations(row, 2)) for row in trials]
    assert found.pairwise_exact == pytest.approx(fmean(exact))
    assert found.mean_jaccard == pytest.approx(fmean(overlap))
    assert found.pairwise_exact <= found.mean_jaccard <= 1
    assert found.all_agree <= found.pairwise_exact + 1e-12


def test_answer_agreement_of_single_trials_is_unknown() -> None:
    """One trial shows no stability."""
    assert answer_agreement([[["a"]], [["b"]]]) is None
    assert outcome_stability([[1.0], [0.0]]) is None


def test_stability_of_a_constant_answer_is_perfect_and_kappa_undefined() -> None:
    """Which is why the nulls' stability is printed beside the arm's."""
    found = answer_agreement([[["a"], ["a"]], [["a"], ["a", "a"]]])
    assert found is not None
    assert (found.pairwise_exact, found.modal_share, found.all_agree) == (1.0, 1.0, 1.0)
    stability = outcome_stability([[1.0, 1.0], [1.0, 1.0]])
    assert stability is not None
    assert (stability.agreement, stability.kappa) == (1.0, None)


@given(trials=OUTCOMES)
def test_outcome_stability_equals_its_parts(trials: list[list[float]]) -> None:
    """Agreement is one less the mean flip probability; kappa is that of the counts."""
    table = np.array(trials)
    runs = table.shape[1]
    found = outcome_stability(table)
    assert found is not None
    flips = flip_probabilities(table.sum(axis=1), runs)
    assert found.agreement == pytest.approx(1 - flips.mean())
    if found.kappa is not None:
        counts = np.column_stack([table.sum(axis=1), runs - table.sum(axis=1)])
        assert fleiss_kappa(counts.astype(int)) == found.kappa
    assert found.pass_hat[1] == pytest.approx(table.mean())


@pytest.mark.oracle
@given(trials=OUTCOMES)
def test_kappa_equals_statsmodels(trials: list[list[float]]) -> None:
    """Fleiss' kappa over tasks as subjects and trials as raters."""
    from statsmodels.stats.inter_rater import fleiss_kappa as their_kappa

    table = np.array(trials)
    found = outcome_stability(table)
    assert found is not None
    if found.kappa is not None:
        counts = np.column_stack([table.sum(axis=1), table.shape[1] - table.sum(axis=1)])
        assert found.kappa == pytest.approx(their_kappa(counts), abs=1e-9)


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
