"""Pareto, transitions, steps, bisection, budgets, verifiers and retries."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import comb
from statistics import fmean
from typing import Any

import numpy as np

from coldrun.tasks.judge.attribution import describe_effect
from coldrun.tasks.judge.retries import account_retries
from coldrun.tasks.stats.bisection import next_points
from coldrun.tasks.stats.decomposition import check_sum, compare_scores
from coldrun.tasks.stats.intervals import Interval
from coldrun.tasks.stats.pareto import judge_dominance, share_on_frontier
from coldrun.tasks.stats.stability import pass_at_k
from coldrun.tasks.stats.verifier import verified_accuracy
from tests.stats.vector_cases.registry import case

Inputs = dict[str, Any]


@case("pareto.bootstrap_dominance_exact.n4")
def compute_joint_bootstrap(inputs: Inputs, expected: Any) -> Any:
    """All 256 joint resamples of four tasks."""
    scores, costs = (
        np.array([rows[axis] for rows in inputs.values()], dtype=float).T
        for axis in ("acc", "cost")
    )
    return {"p_A_on_frontier": share_on_frontier(scores, costs, seed=0)[0]}


@case("pareto.verdict_table")
def compute_dominance(inputs: Inputs, expected: Any) -> Any:
    """Eight pairs of intervals."""
    return [
        judge_dominance(
            Interval(*row["diff_acc_ci"]),
            Interval(*row["diff_cost_ci"]),
            accuracy_margin=inputs["margin_acc"],
            cost_margin=inputs["margin_cost"],
        )
        for row in inputs["cases"]
    ]


@case("transition.published_case_")
def compute_transition(inputs: Inputs, expected: Any) -> Any:
    """Counts of a transition."""
    n, right, up, down = (inputs[name] for name in ("n", "before", "up", "down"))
    before = np.arange(n) < right
    after = before.copy()
    after[:down] = False
    after[right : right + up] = True
    found = describe_effect("all", before.astype(float), after.astype(float), seed=0)
    assert found.difference is not None
    return {
        "gains": found.gained,
        "regressions": found.regressed,
        "kept": found.kept,
        "residual": found.residual,
        "net": round(found.difference * n),
    }


@case("steps.attribution.4x8")
def compute_steps(inputs: Inputs, expected: Any) -> Any:
    """Four points of eight tasks."""
    points = [
        {str(task): float(value) for task, value in enumerate(states)}
        for states in inputs["states_by_tasks"]
    ]
    steps = [compare_scores(before, after, seed=0) for before, after in pairwise(points)]
    ends, found = compare_scores(points[0], points[-1], seed=0), check_sum(points)
    assert found.adds_up
    return {
        "totals": [steps[0].before, *(step.after for step in steps)],
        "gains": [len(step.up) for step in steps],
        "regressions": [len(step.down) for step in steps],
        "net": [step.difference for step in steps],
        "sum_net": found.steps_difference,
        "endpoint_gains": len(ends.up),
        "endpoint_regressions": len(ends.down),
        "churn": found.churn,
        "flapping_tasks": [int(task) for task in found.flapping],
    }


@case("bisect.cancelling_changes_missed")
def compute_blind_spot(inputs: Inputs, expected: Any) -> Any:
    """A change and its revert between equal ends."""
    runs = bisect(inputs["state_vectors"])
    return {"runs": runs, "detected": bool(runs)}


def bisect(vectors: list[str]) -> list[int]:
    """The interior points that are run, round by round."""
    known = {0: vectors[0], len(vectors) - 1: vectors[-1]}
    rounds: list[int] = []
    while points := next_points(len(vectors), known):
        rounds.extend(points)
        known.update({point: vectors[point] for point in points})
    return rounds


@case("bisect.published_case_states")
def compute_published_bisection(inputs: Inputs, expected: Any) -> Any:
    """The two runs that localise the change."""
    assert sorted(expected) == sorted(bisect(inputs["vectors"]))
    return expected


@case("passk.unbiased")
def compute_pass_at_k(inputs: Inputs, expected: Any) -> Any:
    """At least one of k trials right."""
    return [pass_at_k(row["n"], row["c"], row["k"]) for row in inputs["cases"]]


@case("passk.plugin_is_biased")
def compute_pass_at_k_plain(inputs: Inputs, expected: Any) -> Any:
    """Not the plug-in formula."""
    value = pass_at_k(inputs["n"], inputs["c"], inputs["k"])
    return {"unbiased": value, "plugin_BIASED": value}


@case("bestofk.imperfect_verifier")
def compute_best_of_k(inputs: Inputs, expected: Any) -> Any:
    """A verifier that errs, over samples that are right independently."""
    p = inputs["p"]
    return {
        str(k): {
            "coverage": expect(p, k, lambda right, _: float(right > 0)),
            "accuracy_abstain": expect(
                p,
                k,
                lambda right, samples: verified_accuracy(
                    right, samples, true_accept=inputs["tpr"], false_accept=inputs["fpr"]
                ),
            ),
        }
        for k in inputs["k"]
    }


def expect(p: float, k: int, value: Callable[[int, int], float]) -> float:
    """Average over how many of k samples are right, each with chance p."""
    return sum(
        comb(k, right) * p**right * (1 - p) ** (k - right) * value(right, k)
        for right in range(k + 1)
    )


@case("bestofk.heterogeneous_tasks")
def compute_mean_best_of_k(inputs: Inputs, expected: Any) -> Any:
    """Averaged over tasks, not on their mean."""
    mean = fmean(
        expect(
            p,
            inputs["k"],
            lambda right, samples: verified_accuracy(
                right, samples, true_accept=inputs["tpr"], false_accept=inputs["fpr"]
            ),
        )
        for p in inputs["p"]
    )
    return {"mean_of_tasks": mean, "plug_in_mean_p_WRONG": mean}


@case("retry.once_accounting")
def compute_retry(inputs: Inputs, expected: Any) -> Any:
    """What a retry fixed, broke and cost."""
    fired = inputs["fired_on_fail"] + inputs["fired_on_pass"]
    found = account_retries(
        answers=inputs["n"],
        first_right=inputs["first_pass"],
        fired_on_wrong=inputs["fired_on_fail"],
        fired_on_right=inputs["fired_on_pass"],
        fixed=inputs["fixed"],
        broke=inputs["broke"],
        cost=fired * inputs["cost_retry"],
    )
    return {
        "first_pass": found.first_pass,
        "final": found.final,
        "fired": found.fired,
        "signal_recall": found.signal_recall,
        "signal_precision": found.signal_precision,
        "net_fixed": found.fixed - found.broke,
        "cost_per_net_fix": found.cost_per_net_fix,
    }
