"""Proportions, bars and arithmetic of published figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldrun.tasks.config import BarConfig
from coldrun.tasks.judge.gates import judge_bar
from coldrun.tasks.stats.integrity import bound_mrr, compare_dev_sealed
from coldrun.tasks.stats.intervals import wilson_interval
from coldrun.tasks.stats.noise import upper_flip_rate
from tests.stats.vector_cases.registry import case, limits

Inputs = dict[str, Any]


@case("proportion.wilson.", "proportion.zero_trials")
def compute_wilson(inputs: Inputs, expected: Any) -> Any:
    """Wilson limits."""
    k, n = inputs["k"], inputs["n"]
    interval = wilson_interval(k, n, inputs.get("confidence", 0.95))
    return {"low": interval.low, "high": interval.high}


@case("proportion.clopper_pearson.")
def compute_clopper_pearson(inputs: Inputs, expected: Any) -> Any:
    """Exact limits, each of them one-sided at half of the rest."""
    k, n, confidence = inputs["k"], inputs["n"], (1 + inputs["confidence"]) / 2
    return [
        1 - upper_flip_rate(n - k, n, confidence=confidence),
        upper_flip_rate(k, n, confidence=confidence),
    ]


@case("proportion.rule_of_three_exact.")
def compute_rule_of_three(inputs: Inputs, expected: Any) -> Any:
    """The one-sided exact upper limit of nothing in n."""
    return upper_flip_rate(inputs["k"], inputs["n"], confidence=1 - inputs["one_sided_alpha"])


@case("prereg.bar_test.")
def compute_bar(inputs: Inputs, expected: Any) -> Any:
    """A rate against a registered bar, under both rules."""
    k, n, bar = inputs["k"], inputs["n"], inputs["bar"]
    scores = np.array([1.0] * k + [0.0] * (n - k))
    judged = {
        rule: judge_bar(
            BarConfig(arm="tool", measure="hit@5", at_least=bar, rule=rule), scores, {}, seed=0
        )
        for rule in ("point", "lower")
    }
    return {
        "rate": judged["point"].value,
        "point_rule": "PASS" if judged["point"].met else "FAIL",
        "lower_bound_rule": "PASS" if judged["lower"].met else "FAIL",
    }


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


@case("integrity.dev_vs_sealed_gap")
def compute_gap(inputs: Inputs, expected: Any) -> Any:
    """Unpaired difference between the two parts of a panel."""
    gap = compare_dev_sealed(tuple(inputs["dev"]), tuple(inputs["sealed"]))
    return {"diff": gap.difference, "newcombe_ci": limits(gap.interval), "fisher_p": gap.p}
