"""Bootstrap, ratios, latency, clusters, multiplicity and power."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldrun.tasks.judge.token_cost import price_tokens
from coldrun.tasks.stats.bootstrap import (
    bca_constants,
    bca_limits,
    percentile_limits,
    resample_means,
)
from coldrun.tasks.stats.clusters import (
    cluster_sign_flip_p,
    clustered_mean,
    describe_trials,
    effective_tasks,
    resample_clusters,
    smallest_cluster_p,
)
from coldrun.tasks.stats.intervals import mean_interval
from coldrun.tasks.stats.latency import geometric_mean_ratio, quantile_seconds
from coldrun.tasks.stats.multiplicity import (
    adjust_benjamini_hochberg,
    adjust_benjamini_yekutieli,
    adjust_holm,
    intersection_union_p,
    max_t_p,
    spend_alpha,
)
from coldrun.tasks.stats.net_change import bootstrap_binary_difference, net_change
from coldrun.tasks.stats.paired import exact_paired_p
from coldrun.tasks.stats.power import (
    approximate_tasks_needed,
    exact_power,
    graded_tasks_needed,
    minimum_detectable_effect,
)
from coldrun.tasks.stats.ratios import compare_cost_ratios, describe_cost_ratio
from tests.stats.vector_cases.registry import case

Inputs = dict[str, Any]


@case("bootstrap.percentile_exact.")
def compute_percentiles(inputs: Inputs, expected: Any) -> Any:
    """The bootstrap of 0/1 differences without Monte Carlo error, and one with it beside."""
    up, down, n = inputs["up"], inputs["down"], inputs["n"]
    exact = bootstrap_binary_difference(up, down, n)
    differences = np.array([1.0] * up + [-1.0] * down + [0.0] * (n - up - down))
    means = resample_means(differences[:, None], seed=7, resamples=9999)[:, 0]
    low, high = percentile_limits(means)
    assert abs(low - exact.low) < 1.5 / n  # a limit whose mass is near 2.5% may move one step
    assert abs(high - exact.high) < 1.5 / n
    return {
        "q025": exact.low,
        "q05": bootstrap_binary_difference(up, down, n, confidence=0.9).low,
        "q975": exact.high,
        "prob_le_zero": net_change(n, up / n, down / n).at_most(0),
        "exact_one_sided_p": exact_paired_p(up, down),
    }


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
        ratio = describe_cost_ratio(rows["score"], rows["cost"])
        found[arm] = {
            "score_per_dollar": ratio.score_per_dollar,
            "dollars_per_success": ratio.dollars_per_success,
            "delta_se": ratio.delta_error,
            "jackknife_se": ratio.jackknife_error,
            "mean_of_ratios_WRONG": ratio.score_per_dollar,
        }
    return found


@case("bootstrap.paired_ratio_exact.spd_A_minus_B")
def compute_ratio_difference(inputs: Inputs, expected: Any) -> Any:
    """One draw of tasks for both arms, scores and costs."""
    first, second = inputs["A"], inputs["B"]
    found = compare_cost_ratios(
        first["score"], first["cost"], second["score"], second["cost"], seed=0
    )
    assert found is not None
    return {"diff": found.difference, "q025": found.interval.low, "q975": found.interval.high}


@case("cost.token_ledger")
def compute_token_cost(inputs: Inputs, expected: Any) -> Any:
    """Tokens by kind at their own prices."""
    return price_tokens(inputs["calls"], inputs["usd_per_million"])


@case("latency.quantile_p95.type7")
def compute_quantile(inputs: Inputs, expected: Any) -> Any:
    """Linear interpolation."""
    return quantile_seconds(inputs["values"], inputs["p"])


@case("latency.geometric_mean_ratio")
def compute_latency_ratio(inputs: Inputs, expected: Any) -> Any:
    """The typical ratio."""
    return geometric_mean_ratio(inputs["A"], inputs["B"])


@case("cluster.se_of_mean.3_repos", "cluster.se_of_paired_diff")
def compute_clustered_mean(inputs: Inputs, expected: Any) -> Any:
    """Standard errors within repositories."""
    if "clusters" in inputs:
        pairs = [(v, name) for name, values in inputs["clusters"].items() for v in values]
        values, clusters = zip(*pairs, strict=True)
    else:
        values, clusters = inputs["differences"], inputs["cluster"]
    found = clustered_mean(values, clusters)
    return {
        "mean": found.mean,
        "se_clt": found.se_plain,
        "se_miller": found.se_miller,
        "se_cr0": found.se_cr0,
        "se_cr1": found.se_cr1,
        "t_halfwidth_cr1": found.half_width,
    }


@case("cluster.trials_in_tasks.4x3")
def compute_trials(inputs: Inputs, expected: Any) -> Any:
    """Trials averaged per task; pooling all rows gives another, smaller error."""
    found = describe_trials(inputs["outcomes"])
    rows = [value for trials in inputs["outcomes"] for value in trials]
    pooled = clustered_mean(rows, range(len(rows))).se_plain
    assert pooled is not None
    assert pooled < found.standard_error
    return {
        "mean": found.mean,
        "se_task_means": found.standard_error,
        "se_naive_pooled": pooled,
        "within_var": found.within,
        "between_var_unbiased": found.between,
        "se_if_one_trial": found.standard_error_one_trial,
    }


@case("cluster.min_one_sided_p_signflip")
def compute_smallest_p(inputs: Inputs, expected: Any) -> Any:
    """The floor of a cluster sign flip, reached when all clusters gain."""
    for count in inputs["G"]:
        reached = cluster_sign_flip_p(
            [1.0, 0.5] * count, [i // 2 for i in range(2 * count)], seed=0
        )
        assert reached == smallest_cluster_p(count)
    return {str(count): smallest_cluster_p(count) for count in inputs["G"]}


@case("cluster.design_effect")
def compute_effective_tasks(inputs: Inputs, expected: Any) -> Any:
    """What clustered tasks are worth."""
    return {
        str(rho): effective_tasks(inputs["n"], cluster_size=inputs["m"], correlation=rho)
        for rho in inputs["icc"]
    }


@case("cluster.bootstrap_exact.3_repos")
def compute_cluster_bootstrap(inputs: Inputs, expected: Any) -> Any:
    """All 27 resamples of three repositories."""
    clusters = inputs["clusters"]
    means = resample_clusters(clusters, seed=0)
    assert len(means) == 27
    values = [value for scores in clusters.values() for value in scores]
    return {
        "mean": clustered_mean(values, range(len(values))).mean,
        "boot_mean": float(means.mean()),
        "boot_sd": float(means.std()),
    }


@case("multiplicity.adjusted.")
def compute_adjusted(inputs: Inputs, expected: Any) -> Any:
    """Three adjustments of one family."""
    p = inputs["p"]
    return {
        "holm": list(adjust_holm(p)),
        "bh": list(adjust_benjamini_hochberg(p)),
        "by": list(adjust_benjamini_yekutieli(p)),
    }


@case("multiplicity.alpha_spending.telescoping")
def compute_spending(inputs: Inputs, expected: Any) -> Any:
    """The level of each nightly look."""
    looks = range(1, inputs["looks"] + 1)
    levels = [spend_alpha(look, alpha=inputs["alpha"]) for look in looks]
    return {"per_look": levels, "spent": sum(levels)}


@case("multiplicity.intersection_union.all_nulls")
def compute_intersection_union(inputs: Inputs, expected: Any) -> Any:
    """Better than every null."""
    p = intersection_union_p(inputs["p_vs_null"])
    return {"p_iut": p, "passes": p <= inputs["alpha"]}


@case("multiplicity.maxT_exact.two_arms")
def compute_max_t(inputs: Inputs, expected: Any) -> Any:
    """Two correlated arms, alone and together."""
    rows = inputs["differences_vs_baseline"]
    return {
        "raw": [max_t_p([row], seed=0)[0] for row in rows],
        "max_t": list(max_t_p(rows, seed=0)),
    }


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


@case("power.connor_n")
def compute_connor(inputs: Inputs, expected: Any) -> Any:
    """Tasks needed, by the normal approximation."""
    return approximate_tasks_needed(
        discordance=inputs["discordant"],
        difference=inputs["delta"],
        alpha=inputs["alpha"],
        power=inputs["power"],
    )


@case("power.miller_n")
def compute_miller(inputs: Inputs, expected: Any) -> Any:
    """Tasks needed for a graded measure, by trials."""
    return {
        str(trials): graded_tasks_needed(
            between_variance=inputs["omega2"],
            within_variances=(inputs["sigma2_A"], inputs["sigma2_B"]),
            trials=(trials, trials),
            difference=inputs["delta"],
        )
        for trials in inputs["K"]
    }
