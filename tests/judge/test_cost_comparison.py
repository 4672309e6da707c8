"""Accuracy and cost of every two configurations, from one draw of tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.judge.cost_comparison import CostedArm, compare_costs
from coldrun.tasks.stats.intervals import mean_interval

SEED = 5
ARMS = st.integers(2, 4).flatmap(
    lambda arms: st.integers(2, 12).flatmap(
        lambda tasks: st.lists(
            st.lists(
                st.tuples(st.sampled_from([0.0, 1.0]), st.integers(0, 1000)),
                min_size=tasks,
                max_size=tasks,
            ),
            min_size=arms,
            max_size=arms,
        )
    )
)


def make_arm(
    name: str, rows: list[tuple[float, int]], *, is_lower_bound: bool = False
) -> CostedArm:
    scores, costs = zip(*rows, strict=True)
    return CostedArm(
        name=name,
        scores=np.array(scores, float),
        costs=np.array(costs, float) / 1e6,
        seconds={str(place): 1.0 + cost for place, cost in enumerate(costs)},
        is_lower_bound=is_lower_bound,
    )


def test_compare_costs_puts_the_judged_arm_first_and_later_ones_before_earlier() -> None:
    """A candidate against its controls; among controls, the elaborate one against the plain."""
    arms = [make_arm(name, [(1.0, 5), (0.0, 7)]) for name in ("direct", "tool", "retry")]
    found = compare_costs(arms, judged=["tool"], seed=SEED)
    assert found is not None
    pairs = [(pair.arm, pair.against) for pair in found.pairs]
    assert pairs == [("tool", "direct"), ("retry", "direct"), ("tool", "retry")]


def test_compare_costs_by_hand() -> None:
    """Ten tasks: six more at three times the cost."""
    cheap = make_arm("cheap", [(float(task < 3), 100) for task in range(10)])
    dear = make_arm("dear", [(float(task < 9), 300) for task in range(10)])
    found = compare_costs([cheap, dear], judged=["dear"], seed=SEED)
    assert found is not None
    (pair,) = found.pairs

    assert (pair.difference, pair.cost_ratio) == (0.6, pytest.approx(3.0))
    assert pair.cost_difference == pytest.approx(0.0002)
    assert (pair.cost_low, pair.cost_high) == (pytest.approx(0.0002), pytest.approx(0.0002))
    assert pair.standing == "trade_off"
    assert pair.score_per_cost_difference == pytest.approx(0.0, abs=1e-9)
    assert (pair.score_per_cost_low or 0) < 0 < (pair.score_per_cost_high or 0)
    (latency,) = found.latencies
    assert (latency.tasks, latency.seconds.p50, latency.seconds.p95) == (10, 200.0, 200.0)
    assert latency.seconds.ratio == pytest.approx(301 / 101)
    assert found.confidence == 0.95
    assert found.standings == {"cheap": "efficient", "dear": "efficient"}


@given(ARMS)
@settings(max_examples=12)
def test_compare_costs_has_the_intervals_of_each_difference_alone(
    rows: list[list[tuple[float, int]]],
) -> None:
    """Whatever else is compared, the draw of tasks is the same for all."""
    arms = [make_arm(str(place), arm) for place, arm in enumerate(rows)]
    found = compare_costs(arms, seed=SEED)
    assert found is not None
    by_name = {arm.name: arm for arm in arms}
    for pair in found.pairs:
        first, second = by_name[pair.arm], by_name[pair.against]
        alone = mean_interval(first.costs - second.costs, SEED, confidence=found.confidence)
        assert pair.cost_low == pytest.approx(alone.low, abs=1e-12)
        assert pair.cost_high == pytest.approx(alone.high, abs=1e-12)


@given(ARMS)
@settings(max_examples=12)
def test_compare_costs_shows_no_dominance_that_the_means_contradict(
    rows: list[list[tuple[float, int]]],
) -> None:
    """What is shown to be dominated with intervals is so by its plain means, within one task."""
    arms = [make_arm(str(place), arm) for place, arm in enumerate(rows)]
    found = compare_costs(arms, seed=SEED)
    assert found is not None
    one_task = 1 / len(rows[0])
    for pair in found.pairs:
        if pair.standing == "dominates":
            assert pair.difference >= -one_task - 1e-12
            assert pair.cost_difference <= 1e-12


def test_compare_costs_never_calls_a_lower_bound_cheaper() -> None:
    """What did not say what it used may have used anything; others can still be cheaper."""
    silent = make_arm("silent", [(1.0, 100)] * 4 + [(0.0, 100)] * 20, is_lower_bound=True)
    other = make_arm("other", [(1.0, 500)] * 24)
    cheap = make_arm("cheap", [(1.0, 10)] * 24)

    found = compare_costs([silent, other, cheap], seed=SEED)

    assert found is not None
    verdicts = {(pair.arm, pair.against): pair.standing for pair in found.pairs}
    assert verdicts["other", "silent"] == "unresolved"
    assert verdicts["cheap", "silent"] == "dominates"
    assert found.on_frontier == {}


def test_compare_costs_needs_a_margin_to_call_equal_scores_as_good() -> None:
    """Forty tasks without a difference allow a true one of a few; a registered margin decides."""
    arms = [make_arm("direct", [(1.0, 10)] * 40), make_arm("tool", [(1.0, 30)] * 40)]
    for margin_tasks, verdict in ((1.0, "unresolved"), (3.0, "dominated")):
        found = compare_costs(arms, margin_tasks=margin_tasks, seed=SEED)
        assert found is not None
        assert found.pairs[0].standing == verdict


def test_compare_costs_of_many_rivals_widens_the_intervals() -> None:
    """One arm is not dropped because the fifth of five rivals was lucky."""
    generator = np.random.default_rng(1)
    rows = [[(1.0, int(cost)) for cost in generator.integers(50, 150, 40)] for _ in range(5)]
    arms = [make_arm(str(place), arm) for place, arm in enumerate(rows)]
    two, all_five = compare_costs(arms[:2], seed=SEED), compare_costs(arms, seed=SEED)
    assert two is not None
    assert all_five is not None
    same = next(pair for pair in all_five.pairs if (pair.arm, pair.against) == ("1", "0"))
    assert all_five.confidence == pytest.approx(0.9875)
    assert (same.cost_low or 0) < (two.pairs[0].cost_low or 0)
    assert (same.cost_high or 0) > (two.pairs[0].cost_high or 0)


def test_compare_costs_of_one_task_claims_no_order_and_one_arm_has_no_pair() -> None:
    """One task has no spread that an interval could come from."""
    dear, cheap = make_arm("dear", [(0.4, 5)]), make_arm("cheap", [(0.6, 1)])
    found = compare_costs([dear, cheap], seed=1)
    assert found is not None
    (pair,) = found.pairs
    assert (pair.cost_low, pair.cost_high) == (None, None)
    assert (pair.low, pair.high, pair.standing) == (-1, 1, "unresolved")
    assert found.latencies == []
    assert compare_costs([dear], seed=SEED) is None
