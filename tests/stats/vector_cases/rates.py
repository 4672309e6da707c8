"""Proportions, bars and arithmetic of published figures."""

from __future__ import annotations

from typing import Any

from coldrun.tasks.judge.alerts import FASTEST_RATIO, check_total
from coldrun.tasks.stats.aggregate import mean_score
from coldrun.tasks.stats.bars import compare_with_bar
from coldrun.tasks.stats.integrity import (
    bound_mrr,
    compare_dev_sealed,
    describe_pace,
    find_min_runs,
    is_percentage_possible,
    percentage_points,
)
from coldrun.tasks.stats.intervals import (
    agresti_coull_interval,
    clopper_pearson_interval,
    jeffreys_interval,
    wald_interval,
    wilson_interval,
)
from coldrun.tasks.stats.noise import identical_rerun_probability
from coldrun.tasks.stats.transitions import count_transition
from tests.stats.vector_cases.registry import case, limits

Inputs = dict[str, Any]


@case("proportion.wilson.", "proportion.zero_trials")
def compute_wilson(inputs: Inputs, expected: Any) -> Any:
    """Estimate and Wilson limits; nothing is estimated from no task."""
    k, n = inputs["k"], inputs["n"]
    side = "lower" if "side" in inputs else "both"
    interval = wilson_interval(k, n, inputs.get("confidence", 0.95), side=side)
    estimate = mean_score({str(i): float(i < k) for i in range(n)}, [str(i) for i in range(n)])
    return {"estimate": estimate, "low": interval.low, "high": interval.high}


@case("proportion.clopper_pearson.")
def compute_clopper_pearson(inputs: Inputs, expected: Any) -> Any:
    """Exact limits."""
    return limits(clopper_pearson_interval(inputs["k"], inputs["n"], inputs["confidence"]))


@case("proportion.jeffreys.")
def compute_jeffreys(inputs: Inputs, expected: Any) -> Any:
    """Jeffreys limits with the rule for the ends."""
    return limits(jeffreys_interval(inputs["k"], inputs["n"]))


@case("proportion.agresti_coull.")
def compute_agresti_coull(inputs: Inputs, expected: Any) -> Any:
    """Agresti–Coull limits."""
    return limits(agresti_coull_interval(inputs["k"], inputs["n"]))


@case("proportion.wald_is_degenerate.")
def compute_wald(inputs: Inputs, expected: Any) -> Any:
    """The interval without width, which is flagged and is not what reports print."""
    interval = wald_interval(inputs["k"], inputs["n"])
    assert interval.is_degenerate
    assert limits(wilson_interval(inputs["k"], inputs["n"])) != limits(interval)
    return limits(interval)


@case("proportion.rule_of_three_exact.")
def compute_rule_of_three(inputs: Inputs, expected: Any) -> Any:
    """The one-sided exact upper limit of nothing in n."""
    confidence = 1 - inputs["one_sided_alpha"]
    return clopper_pearson_interval(inputs["k"], inputs["n"], confidence, side="upper").high


@case("prereg.bar_test.")
def compute_bar(inputs: Inputs, expected: Any) -> Any:
    """A rate against a registered bar, under both rules."""
    test = compare_with_bar(inputs["k"], inputs["n"], inputs["bar"])
    assert test is not None
    return {
        "rate": test.rate,
        "p_below": test.p_below,
        "p_above": test.p_above,
        "point_rule": "PASS" if test.is_met("point") else "FAIL",
        "lower_bound_rule": "PASS" if test.is_met("lower") else "FAIL",
    }


@case("integrity.grim.n20")
def compute_grim(inputs: Inputs, expected: Any) -> Any:
    """Which percentages a count of 20 can give."""
    return {str(p): is_percentage_possible(p, inputs["n"]) for p in inputs["percentages"]}


@case("integrity.grim.min_runs_of_20")
def compute_grim_runs(inputs: Inputs, expected: Any) -> Any:
    """How many runs of 20 would have to be averaged."""
    return {str(p): find_min_runs(p, inputs["n_per_run"]) for p in inputs["percentages"]}


@case("integrity.mrr_bounds_from_hits.")
def compute_mrr_bounds(inputs: Inputs, expected: Any) -> Any:
    """What MRR can be, given hits at 1, 5 and 8."""
    hits = {1: inputs["hit1"], 5: inputs["hit5"], 8: inputs["any8"]}
    bounds = bound_mrr(inputs["n"], hits)
    reported = inputs["reported_mrr"]
    return {
        "low": bounds.low,
        "high_if_cut_at_8": bounds.high,
        "high_if_uncut": bounds.high_uncut,
        "consistent_if_cut_at_8": bounds.is_possible(reported, decimals=3),
        "consistent_if_uncut": bounds.is_possible(reported, decimals=3, is_cut=False),
    }


@case("integrity.published_case_accounting")
def compute_accounting(inputs: Inputs, expected: Any) -> Any:
    """Published totals reconcile; the policy's cost comes from 19 of 38 and 7 of 21 hits."""
    panel, unsolvable, dev = inputs["panel"], inputs["unsolvable"], inputs["dev"]
    solvable = panel - unsolvable
    parts = {"dev": dev, "sealed": inputs["sealed"]}
    assert check_total("solvable", solvable, parts) is None
    misses = {str(place): count for place, count in enumerate(inputs["misses"])}
    assert check_total("misses", dev - inputs["hit5"], misses) is None
    assert check_total("misses", dev, misses) is not None
    cost = [
        count_transition(before=38, up=0, down=38 - 19, n=dev),
        count_transition(before=21, up=0, down=21 - 7, n=inputs["sealed"]),
    ]
    return {
        "solvable": solvable,
        "dev_plus_sealed": sum(parts.values()),
        "misses": sum(misses.values()),
        "n_minus_hit5": dev - inputs["hit5"],
        "rank_6_to_8": inputs["any8"] - inputs["hit5"],
        "policy_cost": -sum(transition.net for transition in cost),
    }


@case("integrity.published_case_rate_check")
def compute_rates(inputs: Inputs, expected: Any) -> Any:
    """Changes in percentage points."""
    return [percentage_points(up, n) for up, n in zip(inputs["up"], inputs["n"], strict=True)]


@case("integrity.wall_clock")
def compute_pace(inputs: Inputs, expected: Any) -> Any:
    """A run of twelve seconds beside runs of six minutes."""
    history = [60 * minutes for minutes in inputs["history_min"]]
    pace = describe_pace(60 * inputs["elapsed_min"], inputs["tasks"], history)
    assert inputs["alert_below"] == FASTEST_RATIO
    assert pace.ratio_to_median is not None
    return {
        "sec_per_task": pace.seconds_per_task,
        "ratio_to_median": pace.ratio_to_median,
        "alert": pace.ratio_to_median < FASTEST_RATIO,
    }


@case("integrity.identical_rerun_probability")
def compute_identical_reruns(inputs: Inputs, expected: Any) -> Any:
    """How likely two honest runs agree on every task."""
    return {
        name: identical_rerun_probability(inputs["n"], rate)
        for name, rate in inputs["flip_prob"].items()
    }


@case("integrity.dev_vs_sealed_gap")
def compute_gap(inputs: Inputs, expected: Any) -> Any:
    """Unpaired difference between the two parts of a panel."""
    gap = compare_dev_sealed(tuple(inputs["dev"]), tuple(inputs["sealed"]))
    return {"diff": gap.difference, "newcombe_ci": limits(gap.interval), "fisher_p": gap.p}
