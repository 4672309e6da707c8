"""Power and size against the trinomial sum."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.stats.gate_size import rejection_rate, tabulate_rule
from coldrun.tasks.stats.net_change import bootstrap_binary_difference, net_change
from coldrun.tasks.stats.paired import exact_paired_p
from coldrun.tasks.stats.power import (
    count_detectable_tasks,
    exact_power,
    find_critical_ups,
    minimum_detectable_effect,
)


def rejects(up: int, down: int) -> bool:
    """The gate's rule."""
    return exact_paired_p(up, down) <= 0.025


@settings(max_examples=25)
@given(n=st.integers(1, 25), p_up=st.floats(0, 0.6), p_down=st.floats(0, 0.4))
def test_exact_power_equals_the_trinomial_sum(n: int, p_up: float, p_down: float) -> None:
    """Every outcome weighted by its probability, and the tabulated rule."""
    stay = max(0.0, 1 - p_up - p_down)
    expected = sum(
        comb(n, up) * comb(n - up, down) * p_up**up * p_down**down * stay ** (n - up - down)
        for up in range(n + 1)
        for down in range(n + 1 - up)
        if rejects(up, down)
    )
    assert exact_power(n, p_up, p_down) == pytest.approx(expected, abs=1e-10)
    table = tabulate_rule(n, rejects)
    assert rejection_rate(table, p_up, p_down) == pytest.approx(expected, abs=1e-9)


def test_find_critical_ups_are_the_first_that_reject() -> None:
    """One fewer up of as many discordant pairs is not enough."""
    critical = find_critical_ups(80)
    for discordant in range(81):
        ups = int(critical[discordant])
        if ups <= discordant:
            assert rejects(ups, discordant - ups)
        if ups > 0:
            assert not rejects(ups - 1, discordant - ups + 1)


@settings(max_examples=20)
@given(n=st.integers(8, 300), regression_rate=st.sampled_from([0.0, 0.02, 0.1]))
def test_minimum_detectable_effect_has_the_wanted_power(n: int, regression_rate: float) -> None:
    """At the effect the power is 80 %."""
    tasks = minimum_detectable_effect(n, regression_rate=regression_rate)
    if tasks is not None:
        p_up = tasks / n + regression_rate
        assert exact_power(n, p_up, regression_rate) == pytest.approx(0.8, abs=1e-6)


def test_minimum_detectable_effect_of_a_tiny_panel_is_none() -> None:
    """Five gains of five are p = 0.031: nothing can be shown."""
    assert minimum_detectable_effect(5) is None
    assert minimum_detectable_effect(0) is None
    assert minimum_detectable_effect(6) is not None
    assert count_detectable_tasks(5) is None
    assert count_detectable_tasks(71) == 8


def test_exact_power_without_a_change_is_zero_and_of_impossible_rates_raises() -> None:
    """Nothing moves, so nothing is shown."""
    assert exact_power(71, 0.0, 0.0) == 0.0
    with pytest.raises(ValueError, match="exceed 1 together"):
        exact_power(71, 0.7, 0.4)


@settings(max_examples=30)
@given(n=st.integers(1, 40), p_up=st.floats(0, 0.5), p_down=st.floats(0, 0.5))
def test_net_change_is_a_distribution_with_the_right_moments(
    n: int, p_up: float, p_down: float
) -> None:
    """Mean n(u - d), variance n(u + d - (u - d)²)."""
    found = net_change(n, p_up, p_down)
    values = np.arange(-n, n + 1)
    mean = found.masses @ values
    assert found.masses.sum() == pytest.approx(1.0)
    assert mean == pytest.approx(n * (p_up - p_down), abs=1e-9)
    variance = n * (p_up + p_down - (p_up - p_down) ** 2)
    assert found.masses @ (values - mean) ** 2 == pytest.approx(variance, abs=1e-8)
    assert found.at_most(n) == pytest.approx(1.0)
    assert found.at_least_either_way(0) == pytest.approx(1.0)
    assert found.at_least_either_way(n + 1) == 0.0


def test_net_change_quantiles_are_the_first_values_that_reach() -> None:
    """One fair flip of one task: half down, half up."""
    found = net_change(1, 0.5, 0.5)
    assert (found.quantile(0.5), found.quantile(0.51)) == (-1, 1)
    assert net_change(3, 0.0, 0.0).quantile_either_way(0.95) == 0


def test_percentile_bootstrap_clears_zero_before_the_exact_test() -> None:
    """Four ups and no down, where the gate needs six: never both as gates."""
    assert bootstrap_binary_difference(4, 0, 71).low > 0
    assert not rejects(5, 0)
