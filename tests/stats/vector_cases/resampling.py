"""Bootstrap, ratios, latency, clusters, multiplicity and power."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldrun.tasks.judge.spending import add_tokens, price_exactly
from coldrun.tasks.stats.bootstrap import (
    bca_constants,
    bca_limits,
    percentile_limits,
    resample_means,
)
from coldrun.tasks.stats.clusters import cluster_sign_flip_p, clustered_mean
from coldrun.tasks.stats.intervals import mean_interval
from coldrun.tasks.stats.latency import compare_latency, quantile_seconds
from coldrun.tasks.stats.paired import adjust_holm
from coldrun.tasks.stats.power import exact_power, minimum_detectable_effect
from coldrun.tasks.stats.ratios import compare_cost_ratios, describe_cost_ratio
from tests.stats.vector_cases.registry import case

Inputs = dict[str, Any]


@case("bootstrap.mean_exact.n5")
def compute_mean_bootstrap(inputs: Inputs, expected: Any) -> Any:
    """Every resample of five tasks."""
    values = np.array(inputs["differences"])
    means = resample_means(values[:, None], seed=0)[:, 0]
    low, high = percentile_limits(means)
    return {
        "mean": float(means.mean()),
        "boot_se": float(means.std()),
        "q025": low,
        "q975": high,
        "prob_le_zero": float((means <= 1e-12).mean()),
    }


@case("bootstrap.bca_exact.n5")
def compute_bca(inputs: Inputs, expected: Any) -> Any:
    """BCa and its constants."""
    values = np.array(inputs["differences"])
    means = resample_means(values[:, None], seed=0)[:, 0]
    constants = bca_constants(values, means, confidence=inputs["confidence"])
    low, high = bca_limits(values, means, confidence=inputs["confidence"])
    interval = mean_interval(values, seed=0)
    assert (interval.low, interval.high) == (low, high)
    return {
        "acceleration": constants.acceleration,
        "z0": constants.z0,
        "alpha1": constants.alpha_low,
        "alpha2": constants.alpha_high,
        "low": low,
        "high": high,
    }


@case("cost.score_per_dollar.ratio_of_sums")
def compute_cost_ratios(inputs: Inputs, expected: Any) -> Any:
    """Ratios of sums, which are not the means of ratios."""
    found = {}
    for arm, rows in inputs.items():
        ratio = describe_cost_ratio(np.array(rows["score"]), np.array(rows["cost"]))
        found[arm] = {
            "score_per_dollar": ratio.score_per_cost,
            "dollars_per_success": ratio.cost_per_success,
            "mean_of_ratios_WRONG": ratio.score_per_cost,
        }
    return found


@case("bootstrap.paired_ratio_exact.spd_A_minus_B")
def compute_ratio_difference(inputs: Inputs, expected: Any) -> Any:
    """One draw of tasks for both arms, scores and costs."""
    scores, costs = (
        np.array([inputs[arm][axis] for arm in "AB"], dtype=float).T for axis in ("score", "cost")
    )
    (found,) = compare_cost_ratios(scores, costs, [(0, 1)], seed=0)
    assert found is not None
    return {"diff": found.difference, "q025": found.interval.low, "q975": found.interval.high}


@case("cost.token_ledger")
def compute_token_cost(inputs: Inputs, expected: Any) -> Any:
    """Tokens by kind at their own prices."""
    return float(price_exactly(add_tokens(inputs["calls"]), inputs["usd_per_million"]))


@case("latency.quantile_p95.type7")
def compute_quantile(inputs: Inputs, expected: Any) -> Any:
    """Linear interpolation."""
    return quantile_seconds(inputs["values"], inputs["p"])


@case("latency.geometric_mean_ratio")
def compute_latency_ratio(inputs: Inputs, expected: Any) -> Any:
    """The typical ratio."""
    return compare_latency(np.array(inputs["A"]), np.array(inputs["B"]), seed=0).ratio


@case("cluster.se_of_mean.3_repos", "cluster.se_of_paired_diff")
def compute_clustered_mean(inputs: Inputs, expected: Any) -> Any:
    """Standard errors within repositories."""
    if "clusters" in inputs:
        pairs = [(v, name) for name, values in inputs["clusters"].items() for v in values]
        values, clusters = zip(*pairs, strict=True)
    else:
        values, clusters = inputs["differences"], inputs["cluster"]
    found = clustered_mean(np.array(values, dtype=float), clusters)
    return {
        "mean": found.mean,
        "se_clt": found.se_plain,
        "se_cr1": found.se_clustered,
        "t_halfwidth_cr1": found.half_width,
    }


@case("cluster.min_one_sided_p_signflip")
def compute_smallest_p(inputs: Inputs, expected: Any) -> Any:
    """The floor of a cluster sign flip, reached when all clusters gain."""
    return {
        str(count): cluster_sign_flip_p(
            np.array([1.0, 0.5] * count), [str(i // 2) for i in range(2 * count)], seed=0
        )
        for count in inputs["G"]
    }


@case("multiplicity.adjusted.")
def compute_adjusted(inputs: Inputs, expected: Any) -> Any:
    """Holm over one family."""
    return {"holm": list(adjust_holm(inputs["p"]))}


@case("power.exact_mcnemar.")
def compute_power(inputs: Inputs, expected: Any) -> Any:
    """Exact power at the gate's level and at a one-sided 5%."""
    n, up, down = inputs["n"], inputs["p_up"], inputs["p_down"]
    alpha = inputs["alpha_two_sided"]
    return {
        "two_sided": exact_power(n, up, down, alpha=alpha / 2),
        "one_sided_05": exact_power(n, up, down, alpha=alpha),
    }


@case("power.mde80.n71_")
def compute_detectable(inputs: Inputs, expected: Any) -> Any:
    """The net gain that a panel can show."""
    n, down = inputs["n"], inputs["p_down"]
    tasks = minimum_detectable_effect(
        n, regression_rate=down, power=inputs["power"], alpha=inputs["alpha_two_sided"]
    )
    assert tasks is not None
    return {"p_up": tasks / n + down, "net": tasks / n, "net_tasks": tasks}


@case("power.mde80.pure_gain_by_n")
def compute_detectable_by_n(inputs: Inputs, expected: Any) -> Any:
    """The same over panel sizes, without regressions."""
    found = {}
    for n in inputs["n"]:
        tasks = minimum_detectable_effect(n, regression_rate=inputs["p_down"])
        assert tasks is not None
        found[str(n)] = tasks / n
    return found


@case("power.observed_effect.")
def compute_observed_power(inputs: Inputs, expected: Any) -> Any:
    """How often a true effect of the observed size would be shown."""
    return exact_power(inputs["n"], inputs["p_up"], inputs["p_down"])
