"""Dominance, frontiers and their uncertainty against pairwise definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.stats.intervals import Interval
from coldrun.tasks.stats.pareto import (
    Point,
    bootstrap_frontier,
    find_cheapest,
    find_frontier,
    find_hull,
    judge_dominance,
    mark_points,
)

POINTS = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.builds(Point, st.integers(0, 5).map(float), st.integers(0, 5).map(float)),
    min_size=1,
)
INTERVAL = st.tuples(st.integers(-3, 3), st.integers(-3, 3)).map(
    lambda ends: Interval(float(min(ends)), float(max(ends)))
)


@given(points=POINTS)
def test_frontier_is_a_staircase_that_holds_the_hull(points: dict[str, Point]) -> None:
    """Along the frontier dearer is more accurate, and every hull vertex is on it."""
    frontier = find_frontier(points)
    assert frontier
    steps = sorted({(points[name].cost, points[name].accuracy) for name in frontier})
    assert [accuracy for _, accuracy in steps] == sorted({accuracy for _, accuracy in steps})
    assert set(find_hull(points)) <= set(frontier)
    for name in points.keys() - set(frontier):
        assert any(points[other].is_dominating(points[name]) for other in frontier)


def test_equal_points_do_not_dominate_each_other() -> None:
    """Two configurations of the same accuracy and cost are both efficient."""
    assert find_frontier({"a": Point(0.5, 1.0), "b": Point(0.5, 1.0)}) == ("a", "b")


@given(accuracy=INTERVAL, cost=INTERVAL, margins=st.tuples(st.integers(0, 1), st.integers(0, 1)))
def test_judge_dominance_mirrors_when_the_arms_are_swapped(
    accuracy: Interval, cost: Interval, margins: tuple[int, int]
) -> None:
    """A against B says the same as B against A."""
    mirror = {"A_DOMINATES": "B_DOMINATES", "B_DOMINATES": "A_DOMINATES"}
    one = judge_dominance(accuracy, cost, accuracy_margin=margins[0], cost_margin=margins[1])
    other = judge_dominance(
        Interval(-accuracy.high, -accuracy.low),
        Interval(-cost.high, -cost.low),
        accuracy_margin=margins[0],
        cost_margin=margins[1],
    )
    assert other == mirror.get(one, one)


def test_judge_dominance_within_both_margins_is_a_trade_off() -> None:
    """A hair more accurate and a hair dearer: each would dominate, so neither does."""
    found = judge_dominance(
        Interval(0.001, 0.005), Interval(0.001, 0.005), accuracy_margin=0.01, cost_margin=0.01
    )
    assert found == "TRADE_OFF"


def test_mark_points_drops_only_what_is_shown_to_be_dominated() -> None:
    """Unresolved points stay, and are drawn hollow."""
    found = mark_points(
        ["a", "b", "c", "d"],
        {
            ("a", "b"): "A_DOMINATES",
            ("a", "c"): "TRADE_OFF",
            ("c", "b"): "UNRESOLVED",
            ("d", "a"): "UNRESOLVED",
            ("c", "d"): "TRADE_OFF",
        },
    )
    assert found == {"a": "unresolved", "b": "dominated", "c": "unresolved", "d": "unresolved"}
    pair = {("a", "b"): "B_DOMINATES"}
    assert mark_points(["a", "b"], pair) == {"a": "dominated", "b": "efficient"}


def test_find_cheapest_without_an_accurate_one_is_none() -> None:
    """Of equally cheap ones the better is named."""
    points = {"a": Point(0.4, 1.0), "b": Point(0.6, 2.0), "c": Point(0.7, 2.0)}
    assert find_cheapest(points, min_accuracy=0.5) == "c"
    assert find_cheapest(points, min_accuracy=0.9) is None


@settings(max_examples=20)
@given(
    rows=st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.3, 1.0])] * 4), min_size=1, max_size=4)
)
def test_bootstrap_frontier_equals_enumeration(rows: list[tuple[float, ...]]) -> None:
    """Every joint draw of tasks, both axes, ties included."""
    table = np.round(np.array(rows) * 10).astype(int)
    n = len(table)
    counted = dict.fromkeys(("ab", "ba", "frontier"), 0)
    for drawn in product(range(n), repeat=n):
        acc_a, acc_b, cost_a, cost_b = table[list(drawn)].sum(axis=0)
        a, b = Point(float(acc_a), float(cost_a)), Point(float(acc_b), float(cost_b))
        counted["ab"] += a.is_dominating(b)
        counted["ba"] += b.is_dominating(a)
        counted["frontier"] += not b.is_dominating(a)
    columns = list(zip(*rows, strict=True))
    found = bootstrap_frontier(
        {"a": columns[0], "b": columns[1]}, {"a": columns[2], "b": columns[3]}, seed=0
    )
    assert found.dominates["a", "b"] == pytest.approx(counted["ab"] / n**n)
    assert found.dominates["b", "a"] == pytest.approx(counted["ba"] / n**n)
    assert found.on_frontier["a"] == pytest.approx(counted["frontier"] / n**n)
