"""Paired tests against SciPy, statsmodels and enumeration."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coldrun.tasks.stats.paired import (
    chi_square_paired_p,
    count_discordant,
    exact_paired_p,
    exact_paired_two_sided_p,
    find_min_up,
    mid_p,
    mid_two_sided_p,
    sign_flip_p,
)
from coldrun.tasks.stats.paired_intervals import (
    PairedCounts,
    bonett_price_interval,
    conditional_odds_ratio,
    effect_sizes,
    newcombe_paired_interval,
    paired_errors,
    tango_interval,
    wald_paired_interval,
)

COUNTS = st.integers(0, 60)


@given(up=COUNTS, down=COUNTS)
def test_exact_p_equals_scipy(up: int, down: int) -> None:
    """Whole-number arithmetic and the library agree, except where SciPy has no answer."""
    if up + down:
        one = stats.binomtest(up, up + down, 0.5, alternative="greater").pvalue
        assert exact_paired_p(up, down) == pytest.approx(one, rel=1e-12)


@pytest.mark.oracle
@given(up=COUNTS, down=COUNTS)
def test_exact_p_equals_statsmodels(up: int, down: int) -> None:
    """McNemar's exact test is two-sided there."""
    from statsmodels.stats.contingency_tables import mcnemar

    two = mcnemar([[0, up], [down, 0]], exact=True).pvalue
    assert exact_paired_two_sided_p(up, down) == pytest.approx(two, rel=1e-9)


def test_exact_p_without_a_discordant_pair_is_one_in_every_form() -> None:
    """SciPy raises or gives NaN here."""
    assert exact_paired_p(0, 0) == exact_paired_two_sided_p(0, 0) == 1.0
    assert mid_p(0, 0) == mid_two_sided_p(0, 0) == chi_square_paired_p(0, 0) == 1.0
    assert sign_flip_p([], seed=0) == sign_flip_p([0.0, 0.0], seed=0) == 1.0


@pytest.mark.oracle
def test_asymptotic_p_of_statsmodels_without_a_discordant_pair_is_wrong() -> None:
    """It gives 0 where nothing differs, which is why the gate is exact."""
    from statsmodels.stats.contingency_tables import mcnemar

    with np.errstate(invalid="ignore"):
        assert mcnemar([[5, 0], [0, 5]], exact=False, correction=False).pvalue != 1.0


def test_exact_p_of_very_many_pairs_equals_the_exact_sum() -> None:
    """Beyond 4,096 pairs the library's tail takes over without a step."""
    for up, down in ((2100, 1996), (2100, 1997)):
        expected = stats.binom.sf(up - 1, up + down, 0.5)
        assert exact_paired_p(up, down) == pytest.approx(expected, rel=1e-9)


def test_exact_p_of_negative_counts_raises() -> None:
    """A count below zero is a mistake of the caller."""
    with pytest.raises(ValueError, match="must not be negative: up -1"):
        exact_paired_p(-1, 2)


@given(up=COUNTS, down=COUNTS)
def test_mid_p_lies_below_the_exact_p_and_mirrors(up: int, down: int) -> None:
    """Mid-p spends more of the level, and both directions add up to one."""
    assert mid_p(up, down) <= exact_paired_p(up, down)
    assert mid_two_sided_p(up, down) <= exact_paired_two_sided_p(up, down) + 1e-12
    if up + down:
        assert mid_p(up, down) + mid_p(down, up) == pytest.approx(1.0)


@given(down=st.integers(0, 20))
def test_find_min_up_is_the_first_that_is_significant(down: int) -> None:
    """One fewer is not enough."""
    up = find_min_up(down)
    assert exact_paired_p(up, down) <= 0.025 < exact_paired_p(up - 1, down)


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


def test_sign_flip_p_of_nan_raises() -> None:
    """A missing task must be scored 0 before pairing, not passed on."""
    with pytest.raises(ValueError, match="finite"):
        sign_flip_p([0.1, float("nan")], seed=0)


def test_count_discordant_counts_both_directions() -> None:
    """Up is where the first is better."""
    assert count_discordant([1, 0, 1, 0], [0, 1, 0, 0]) == (2, 1)


@given(
    cells=st.tuples(*[st.integers(0, 12)] * 4).filter(lambda cells: sum(cells) > 0),
)
def test_paired_intervals_contain_the_difference_and_mirror(
    cells: tuple[int, int, int, int],
) -> None:
    """Swapping the arms turns every interval round."""
    both, up, down, neither = cells
    counts = PairedCounts(both=both, up=up, down=down, neither=neither)
    swapped = PairedCounts(both=both, up=down, down=up, neither=neither)
    n = counts.n
    for one, other in (
        (newcombe_paired_interval(counts), newcombe_paired_interval(swapped)),
        (tango_interval(up, down, n), tango_interval(down, up, n)),
        (bonett_price_interval(up, down, n), bonett_price_interval(down, up, n)),
        (wald_paired_interval(up, down, n), wald_paired_interval(down, up, n)),
    ):
        assert one.low == pytest.approx(-other.high, abs=1e-7)
        assert one.high == pytest.approx(-other.low, abs=1e-7)
    for interval in (newcombe_paired_interval(counts), tango_interval(up, down, n)):
        assert interval.low - 1e-9 <= counts.difference <= interval.high + 1e-9
        assert -1 - 1e-9 <= interval.low <= interval.high <= 1 + 1e-9


def test_paired_intervals_of_impossible_counts_raise() -> None:
    """No task, or more discordant tasks than tasks."""
    for counts in ((0, 0, 0), (5, 0, 4), (-1, 0, 4)):
        with pytest.raises(ValueError, match="a paired difference needs tasks"):
            bonett_price_interval(*counts)


@given(up=st.integers(0, 40), down=st.integers(0, 40))
def test_conditional_odds_clear_one_exactly_when_the_exact_test_does(up: int, down: int) -> None:
    """The two describe the same evidence."""
    odds = conditional_odds_ratio(up, down)
    if odds is None:
        assert up == down == 0
    else:
        is_clear = odds.odds_ratio_interval.low > 1 or odds.odds_ratio_interval.high < 1
        assert is_clear == (exact_paired_two_sided_p(up, down) < 0.05)
        assert odds.odds_ratio == (up / down if down else inf)


def test_effect_sizes_of_contradicting_counts_raise() -> None:
    """Before, ups and downs give after, or the pairing is wrong."""
    with pytest.raises(ValueError, match="check the pairing"):
        effect_sizes(before=3, after=5, n=10, up=1, down=0)
    found = effect_sizes(before=0, after=0, n=10, up=0, down=0)
    assert found.relative is None
    assert found.cohen_g is None


def test_paired_errors_of_constant_outcomes_have_no_correlation() -> None:
    """An arm that never varies correlates with nothing."""
    assert paired_errors(PairedCounts(both=0, up=0, down=3, neither=4)).correlation is None
