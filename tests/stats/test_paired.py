"""Paired tests against SciPy, statsmodels and enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coldrun.tasks.stats.paired import (
    adjust_holm,
    exact_paired_p,
    exact_paired_two_sided_p,
    sign_flip_p,
)

COUNTS = st.integers(0, 60)


@given(up=COUNTS, down=COUNTS)
def test_exact_p_equals_scipy(up: int, down: int) -> None:
    """Whole-number arithmetic and the library agree, except where SciPy has no answer."""
    if up + down:
        one = stats.binomtest(up, up + down, 0.5, alternative="greater").pvalue
        assert exact_paired_p(up, down) == pytest.approx(one, rel=1e-12)


def test_exact_p_without_a_discordant_pair_is_one_in_every_form() -> None:
    """SciPy raises or gives NaN here."""
    assert exact_paired_p(0, 0) == exact_paired_two_sided_p(0, 0) == 1.0
    assert sign_flip_p([], seed=0) == sign_flip_p([0.0, 0.0], seed=0) == 1.0


def test_exact_p_of_very_many_pairs_equals_the_exact_sum() -> None:
    """Beyond 4,096 pairs the library's tail takes over without a step."""
    for up, down in ((2100, 1996), (2100, 1997)):
        expected = stats.binom.sf(up - 1, up + down, 0.5)
        assert exact_paired_p(up, down) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40)
@given(
    values=st.lists(
        st.sampled_from([-1.0, -0.3, -0.1, 0.0, 0.1, 0.2, 0.3, 0.7]), min_size=1, max_size=9
    )
)
def test_sign_flip_p_of_few_tasks_equals_enumeration(values: list[float]) -> None:
    """All sign vectors, with exact tenths instead of floats."""
    tenths = [round(10 * value) for value in values]
    sums = [
        sum(sign * value for sign, value in zip(signs, tenths, strict=True))
        for signs in product((1, -1), repeat=len(tenths))
    ]
    greater = sum(total >= sum(tenths) for total in sums) / len(sums)
    either = sum(abs(total) >= abs(sum(tenths)) for total in sums) / len(sums)
    assert sign_flip_p(values, seed=0) == pytest.approx(greater, rel=1e-12)
    assert sign_flip_p(values, seed=0, alternative="two-sided") == pytest.approx(either, rel=1e-12)


@given(
    signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=200),
    size=st.sampled_from([1.0, 1 / 3, 0.1]),
)
def test_sign_flip_p_of_one_size_equals_the_exact_test(signs: list[int], size: float) -> None:
    """On 0/1 outcomes the permutation test and the exact test are one."""
    p = sign_flip_p([sign * size for sign in signs], seed=3)
    assert p == exact_paired_p(signs.count(1), signs.count(-1))


def test_sign_flip_p_of_many_tasks_agrees_with_scipy_within_its_error() -> None:
    """Random signs, ours and SciPy's, are within four standard errors of each other."""
    generator = np.random.default_rng(11)
    differences = generator.normal(0.04, 0.3, size=150)
    ours = sign_flip_p(differences, seed=1, resamples=20_000)
    theirs = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        alternative="greater",
        n_resamples=20_000,
        rng=np.random.default_rng(2),
    ).pvalue
    assert abs(ours - theirs) < 4 * np.sqrt(2 * ours * (1 - ours) / 20_000)


def test_sign_flip_p_with_the_same_seed_repeats_and_never_reaches_zero() -> None:
    """A Monte Carlo p counts the observed arrangement too."""
    differences = [0.5 + task / 1000 for task in range(60)]
    assert sign_flip_p(differences, seed=5) == sign_flip_p(differences, seed=5) == 1 / 10_000


@pytest.mark.oracle
@settings(max_examples=20)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_equals_statsmodels(p: list[float]) -> None:
    """Holm, and not Holm–Šidák, which is the default there."""
    from statsmodels.stats.multitest import multipletests

    assert adjust_holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)


def test_p_values_of_impossible_data_raise() -> None:
    """A missing task is scored 0 before pairing, and an undefined comparison is left out."""
    with pytest.raises(ValueError, match="must not be negative: up -1"):
        exact_paired_p(-1, 2)
    with pytest.raises(ValueError, match="finite"):
        sign_flip_p([0.1, float("nan")], seed=0)
    for p in ([0.1, float("nan")], [1.5], [-0.1]):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            adjust_holm(p)
    assert adjust_holm([]) == ()
