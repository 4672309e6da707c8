"""Adjusted p-values against statsmodels and enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.stats.multiplicity import (
    adjust_benjamini_hochberg,
    adjust_benjamini_yekutieli,
    adjust_family,
    adjust_holm,
    intersection_union_p,
    max_t_p,
    spend_alpha,
)

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@pytest.mark.oracle
@settings(max_examples=20)
@given(p=P_VALUES)
def test_adjusted_p_equals_statsmodels(p: list[float]) -> None:
    """Holm, Benjamini–Hochberg and Benjamini–Yekutieli."""
    from statsmodels.stats.multitest import multipletests

    for ours, method in (
        (adjust_holm, "holm"),
        (adjust_benjamini_hochberg, "fdr_bh"),
        (adjust_benjamini_yekutieli, "fdr_by"),
    ):
        assert ours(p) == pytest.approx(multipletests(p, method=method)[1], abs=1e-12)


def test_adjust_without_p_values_gives_none_and_nan_raises() -> None:
    """An undefined comparison is left out by the caller, not adjusted."""
    assert adjust_holm([]) == adjust_benjamini_hochberg([]) == ()
    for p in ([0.1, float("nan")], [1.5], [-0.1]):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            adjust_holm(p)


def test_adjust_family_keeps_names_and_raw_values() -> None:
    """A report can say what the family was."""
    family = adjust_family("steps of one arm", {"a": 0.015625, "b": 0.5, "c": 0.125})
    assert family.method == "Holm"
    assert family.adjusted == pytest.approx({"a": 0.046875, "b": 0.5, "c": 0.25})
    assert family.raw["a"] == 0.015625


def test_intersection_union_p_of_nothing_raises() -> None:
    """Better than all of none is no claim."""
    with pytest.raises(ValueError, match="at least one comparison"):
        intersection_union_p({})


@settings(max_examples=40)
@given(
    table=st.integers(1, 7).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=n, max_size=n),
            min_size=1,
            max_size=4,
        )
    )
)
def test_max_t_p_of_few_tasks_equals_enumeration(table: list[list[float]]) -> None:
    """A task flips in every arm at once."""
    rows = np.array(table)
    sums = np.array(
        [np.abs(rows @ np.array(signs)) for signs in product((1, -1), repeat=rows.shape[1])]
    )
    expected = [(sums.max(axis=1) >= abs(row.sum()) - 1e-9).mean() for row in rows]
    assert max_t_p(rows, seed=0) == pytest.approx(expected, abs=1e-12)


def test_max_t_p_of_equal_arms_costs_nothing() -> None:
    """Arms that never differ from each other are one comparison, where Holm would see two."""
    differences = np.random.default_rng(0).normal(0.1, 0.3, size=80)
    alone = max_t_p([differences], seed=1)
    assert max_t_p([differences, differences], seed=1) == (alone[0], alone[0])


def test_spend_alpha_over_any_number_of_looks_stays_below_alpha() -> None:
    """The levels of a thousand nights sum to less than one level."""
    assert sum(spend_alpha(look) for look in range(1, 1001)) < 0.05
