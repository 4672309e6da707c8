"""Pareto, transitions, steps, bisection, budgets, verifiers and retries."""

from __future__ import annotations

from typing import Any

from coldrun.tasks.stats.bisection import bisect_states, bisection_cost, next_points
from coldrun.tasks.stats.budget import expected_best, expected_best_with_replacement
from coldrun.tasks.stats.intervals import Interval
from coldrun.tasks.stats.pareto import (
    Point,
    bootstrap_frontier,
    find_cheapest,
    find_frontier,
    find_hull,
    judge_dominance,
)
from coldrun.tasks.stats.passk import pass_at_k
from coldrun.tasks.stats.ratios import describe_cost_ratio
from coldrun.tasks.stats.retry_once import RetryCounts, account_retries, expect_any_of_attempts
from coldrun.tasks.stats.transitions import (
    attribute_steps,
    compare_outcomes,
    count_transition,
    difference_totals,
)
from coldrun.tasks.stats.verifier import best_of_k, best_of_stored, mean_best_of_k
from tests.stats.vector_cases.registry import case

Inputs = dict[str, Any]


def make_points(inputs: Inputs) -> dict[str, Point]:
    """Read points of accuracy and cost."""
    return {name: Point(value["acc"], value["cost"]) for name, value in inputs.items()}


@case("pareto.frontier.ties_and_duplicates")
def compute_frontier(inputs: Inputs, expected: Any) -> Any:
    """Equal points both stay."""
    return list(find_frontier(make_points(inputs["points"])))


@case("pareto.staircase_vs_hull")
def compute_hull(inputs: Inputs, expected: Any) -> Any:
    """What the hull would drop."""
    points = make_points(inputs["points"])
    return {"staircase": list(find_frontier(points)), "hull": list(find_hull(points))}


@case("pareto.bootstrap_dominance_exact.n4")
def compute_joint_bootstrap(inputs: Inputs, expected: Any) -> Any:
    """All 256 joint resamples of four tasks."""
    found = bootstrap_frontier(
        {name: rows["acc"] for name, rows in inputs.items()},
        {name: rows["cost"] for name, rows in inputs.items()},
        seed=0,
    )
    return {
        "p_A_dominates": found.dominates["A", "B"],
        "p_B_dominates": found.dominates["B", "A"],
        "p_A_more_accurate": found.is_more_accurate["A", "B"],
        "p_A_cheaper": found.is_cheaper["A", "B"],
        "p_A_on_frontier": found.on_frontier["A"],
    }


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


@case("pareto.ratio_reverses_choice")
def compute_choice(inputs: Inputs, expected: Any) -> Any:
    """The best ratio is not good enough."""
    points = make_points({name: inputs[name] for name in ("cheap", "good")})
    ratios = {}
    for name, point in points.items():
        ratio = describe_cost_ratio([point.accuracy], [point.cost]).score_per_dollar
        assert ratio is not None
        ratios[name] = ratio
    return {
        "spd": ratios,
        "best_by_ratio": max(ratios, key=lambda name: ratios[name]),
        "best_feasible": find_cheapest(points, min_accuracy=inputs["min_acc"]),
    }


@case("transition.published_case_")
def compute_transition(inputs: Inputs, expected: Any) -> Any:
    """Counts of a transition, from counts and from tasks."""
    found = count_transition(**inputs)
    before = {str(i): float(i < inputs["before"]) for i in range(inputs["n"])}
    after = dict(before)
    for place in range(inputs["down"]):
        after[str(place)] = 0.0
    for place in range(inputs["before"], inputs["before"] + inputs["up"]):
        after[str(place)] = 1.0
    assert compare_outcomes(before, after).counts == found
    assert found.kept + found.gains + found.regressions + found.residual == found.n
    return {
        "gains": found.gains,
        "regressions": found.regressions,
        "kept": found.kept,
        "residual": found.residual,
        "net": found.net,
        "after": found.after,
        "gain_rate": found.gain_rate,
        "regression_rate": found.regression_rate,
    }


@case("steps.attribution.4x8")
def compute_steps(inputs: Inputs, expected: Any) -> Any:
    """Four points of eight tasks."""
    found = attribute_steps(inputs["states_by_tasks"])
    return {
        "totals": list(found.totals),
        "gains": list(found.gains),
        "regressions": list(found.regressions),
        "net": list(found.nets),
        "sum_net": sum(found.nets),
        "endpoint_gains": found.endpoint_gains,
        "endpoint_regressions": found.endpoint_regressions,
        "churn": found.churn,
        "flapping_tasks": list(found.flapping),
    }


@case("steps.published_case_sequence")
def compute_nets(inputs: Inputs, expected: Any) -> Any:
    """Nets from totals."""
    nets = difference_totals(inputs["totals"])
    return {"net": list(nets), "total": sum(nets)}


@case("bisect.expected_interior_runs")
def compute_bisection(inputs: Inputs, expected: Any) -> Any:
    """Runs on average."""
    found = {}
    for row in inputs["cases"]:
        cost = bisection_cost(row["steps"], row["changed_steps"])
        key = f"{row['steps']},{row['changed_steps']}"
        found[key] = {"expected": cost.expected, "full_backfill": cost.backfill}
    return found


@case("bisect.worst_case")
def compute_worst_bisection(inputs: Inputs, expected: Any) -> Any:
    """Runs at worst."""
    return {f"{m},{k}": bisection_cost(m, k).worst for m, k in inputs["cases"]}


@case("bisect.cancelling_changes_missed")
def compute_blind_spot(inputs: Inputs, expected: Any) -> Any:
    """A change and its revert between equal ends."""
    runs = bisect_states(inputs["state_vectors"])
    return {"runs": list(runs), "detected": bool(runs)}


@case("bisect.published_case_states")
def compute_published_bisection(inputs: Inputs, expected: Any) -> Any:
    """The two runs that localise the change, also round by round."""
    vectors = inputs["vectors"]
    known = {0: vectors[0], len(vectors) - 1: vectors[-1]}
    rounds: list[int] = []
    while points := next_points(len(vectors), known):
        rounds.extend(points)
        known.update({point: vectors[point] for point in points})
    runs = list(bisect_states(vectors))
    assert sorted(rounds) == sorted(runs)
    return runs


@case("evp.expected_max_by_budget")
def compute_expected_best(inputs: Inputs, expected: Any) -> Any:
    """The best of n of five trials, both ways."""
    return {
        str(n): {
            "dodge_with_replacement": expected_best_with_replacement(inputs["values"], n),
            "unbiased_without_replacement": expected_best(inputs["values"], n),
        }
        for n in inputs["n"]
    }


@case("evp.binary_equals_pass_at_k")
def compute_binary_best(inputs: Inputs, expected: Any) -> Any:
    """On 0/1 trials the expected best is pass@k."""
    values, k = inputs["values"], inputs["k"]
    best = expected_best(values, k)
    assert abs(pass_at_k(len(values), sum(values), k) - best) < 1e-15
    return best


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
    """A verifier that errs."""
    found = {}
    for k in inputs["k"]:
        row = best_of_k(inputs["p"], true_accept=inputs["tpr"], false_accept=inputs["fpr"], k=k)
        found[str(k)] = {
            "coverage": row.coverage,
            "accept_rate": row.accept_rate,
            "ppv": row.precision,
            "accuracy_abstain": row.accuracy_abstaining,
            "answered": row.answered,
            "accuracy_fallback_random": row.accuracy_falling_back,
            "expected_samples_stop_at_first": row.expected_samples,
        }
    return found


@case("bestofk.heterogeneous_tasks")
def compute_mean_best_of_k(inputs: Inputs, expected: Any) -> Any:
    """Averaged over tasks, not on their mean."""
    mean = mean_best_of_k(
        inputs["p"], true_accept=inputs["tpr"], false_accept=inputs["fpr"], k=inputs["k"]
    )
    return {"mean_of_tasks": mean, "plug_in_mean_p_WRONG": mean}


@case("bestofk.from_stored_samples")
def compute_best_of_stored(inputs: Inputs, expected: Any) -> Any:
    """Stored samples with tied scores."""
    return {
        str(k): best_of_stored(inputs["verifier_scores"], inputs["correct"], k) for k in inputs["k"]
    }


@case("retry.once_accounting")
def compute_retry(inputs: Inputs, expected: Any) -> Any:
    """What a retry fixed, broke and cost."""
    costs = {f"{name}_usd": inputs[name] for name in ("cost_first", "cost_retry")}
    counts = {name: value for name, value in inputs.items() if not name.startswith("cost_")}
    found = account_retries(RetryCounts(**counts, **costs))
    return {
        "first_pass": found.first_pass,
        "final": found.final,
        "fired": found.fired,
        "fire_rate": found.fire_rate,
        "signal_recall": found.signal_recall,
        "signal_precision": found.signal_precision,
        "net_fixed": found.net_fixed,
        "total_cost": found.total_cost_usd,
        "cost_per_net_fix": found.cost_per_net_fix_usd,
        "oracle_final": found.oracle_final,
    }


@case("retry.independence_overstates")
def compute_retry_independence(inputs: Inputs, expected: Any) -> Any:
    """Two attempts per task, and the formula on the mean that overstates."""
    p = [float(value) for value in inputs["p_per_task"]]
    mean = expect_any_of_attempts(p, attempts=1)
    found = {
        "mean_p": mean,
        "two_attempts_true": expect_any_of_attempts(p),
        "formula_on_mean_p": expect_any_of_attempts([mean]),
    }
    assert found["two_attempts_true"] < found["formula_on_mean_p"]
    return found
