"""Power and size against the trinomial sum."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.stats.noise import net_change
from coldrun.tasks.stats.paired import (
    exact_paired_p,
    exact_power,
    find_critical_ups,
    minimum_detectable_effect,
)


def rejects(up: int, down: int) -> bool:
    return exact_paired_p(up, down) <= 0.025


@settings(max_examples=25)
@given(n=st.integers(1, 25), p_up=st.floats(0, 0.6), p_down=st.floats(0, 0.4))
def test_exact_power_equals_the_trinomial_sum(n: int, p_up: float, p_down: float) -> None:
    """Every outcome weighted by its probability."""
    stay = max(0.0, 1 - p_up - p_down)
    expected = sum(
        comb(n, up) * comb(n - up, down) * p_up**up * p_down**down * stay ** (n - up - down)
        for up in range(n + 1)
        for down in range(n + 1 - up)
        if rejects(up, down)
    )
    assert exact_power(n, p_up, p_down) == pytest.approx(expected, abs=1e-10)


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
    assert 7 < (minimum_detectable_effect(71) or 0) < 8
    assert exact_power(71, 0.0, 0.0) == 0.0
    with pytest.raises(ValueError, match="exceed 1 together"):
        exact_power(71, 0.7, 0.4)


@settings(max_examples=30)
@given(n=st.integers(1, 40), p_up=st.floats(0, 0.5), p_down=st.floats(0, 0.5))
def test_net_change_is_a_distribution_with_the_right_moments(
    n: int, p_up: float, p_down: float
) -> None:
    """Mean n(u - d), variance n(u + d - (u - d)²)."""
    masses = net_change(n, p_up, p_down)
    values = np.arange(-n, n + 1)
    mean = masses @ values
    assert masses.sum() == pytest.approx(1.0)
    assert mean == pytest.approx(n * (p_up - p_down), abs=1e-9)
    variance = n * (p_up + p_down - (p_up - p_down) ** 2)
    assert masses @ (values - mean) ** 2 == pytest.approx(variance, abs=1e-8)
