"""Transitions, steps and bisection."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.stats.bisection import bisect_states, bisection_cost, next_points
from coldrun.tasks.stats.transitions import (
    attribute_steps,
    collapse_equal,
    compare_outcomes,
    count_transition,
)

STATES = st.integers(1, 8).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([0, 1]), min_size=n, max_size=n), min_size=2, max_size=6
    )
)


@given(states=STATES)
def test_attribute_steps_telescopes_and_accounts_for_churn(states: list[list[int]]) -> None:
    """Nets of steps sum to the net of the ends; their gains exceed it by the churn."""
    found = attribute_steps(states)
    assert sum(found.nets) == found.endpoint_gains - found.endpoint_regressions
    assert sum(found.nets) == found.totals[-1] - found.totals[0]
    excess = sum(found.gains) - found.endpoint_gains
    assert found.churn == 2 * excess >= 0
    assert (found.churn == 0) == (not found.flapping)


@given(
    before=st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([0.0, 1.0])),
    after=st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([0.0, 1.0])),
)
def test_compare_outcomes_counts_every_common_task_once(
    before: dict[str, float], after: dict[str, float]
) -> None:
    """Kept, gained, regressed and residual tasks are all common tasks."""
    found = compare_outcomes(before, after)
    counts = found.counts
    assert counts.kept + counts.gains + counts.regressions + counts.residual == counts.n
    assert counts.n + len(found.left_out) == len(before.keys() | after.keys())
    assert counts.after == sum(after[task] for task in before.keys() & after.keys())


def test_transition_rates_stand_on_their_own_bases() -> None:
    """Nothing that passed can regress, and no regression of 19 still allows 14.6 %."""
    found = count_transition(before=19, up=13, down=0, n=71)
    assert found.regression_rate_upper == pytest.approx(0.14587, abs=1e-5)
    nothing = count_transition(before=0, up=1, down=0, n=4)
    assert nothing.regression_rate is None
    assert nothing.regression_rate_upper is None
    assert count_transition(before=4, up=0, down=1, n=4).gain_rate is None
    with pytest.raises(ValueError, match="impossible"):
        count_transition(before=3, up=0, down=4, n=10)


def test_collapse_equal_groups_neighbours_only() -> None:
    """A tree that comes back later is another point: something lay between."""
    assert collapse_equal(["a", "a", "b", "a"]) == ((0, 1), (2,), (3,))
    assert collapse_equal([]) == ()


@given(
    changes=st.integers(2, 12).flatmap(
        lambda steps: st.tuples(st.just(steps), st.sets(st.integers(1, steps), max_size=4))
    )
)
def test_bisection_finds_every_change_that_is_not_undone(
    changes: tuple[int, set[int]],
) -> None:
    """Both neighbours of every change are run or are ends; round by round gives the same."""
    steps, changed = changes
    states = [sum(change <= point for change in changed) for point in range(steps + 1)]
    runs = bisect_states(states)
    known = {0: states[0], steps: states[-1]} | {run: states[run] for run in runs}
    assert all({change - 1, change} <= known.keys() for change in changed)
    assert len(runs) == len(set(runs)) <= steps - 1
    grown = {0: states[0], steps: states[-1]}
    rounds = 0
    while points := next_points(steps + 1, grown):
        grown.update({point: states[point] for point in points})
        rounds += 1
    assert grown == known
    assert rounds <= (steps - 1).bit_length()


@pytest.mark.parametrize(("steps", "changed"), [(1, 0), (1, 1), (5, 2), (6, 3), (8, 2), (9, 9)])
def test_bisection_cost_equals_enumeration(steps: int, changed: int) -> None:
    """Over every place that the changes can have."""
    runs = [
        len(bisect_states([sum(c <= point for c in places) for point in range(steps + 1)]))
        for places in combinations(range(1, steps + 1), changed)
    ]
    found = bisection_cost(steps, changed)
    assert found.expected == pytest.approx(fmean(runs))
    assert (found.worst, found.backfill) == (max(runs), steps - 1)


def test_next_points_with_a_noise_floor_ignores_small_differences() -> None:
    """Vectors that differ within the floor are not split."""
    known = {0: 10, 8: 11}
    assert next_points(9, known) == (4,)
    assert next_points(9, known, lambda one, other: abs(one - other) > 1) == ()
    with pytest.raises(ValueError, match="point 8 of 9 must be measured"):
        next_points(9, {0: 10})
