"""Paired tests, intervals of paired differences, and effect sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from coldrun.tasks.stats.gate import p_by_overlap
from coldrun.tasks.stats.gate_size import rejection_rate, tabulate_rule
from coldrun.tasks.stats.net_change import bootstrap_binary_difference, net_change
from coldrun.tasks.stats.paired import (
    chi_square_paired_p,
    exact_paired_p,
    exact_paired_two_sided_p,
    find_min_up,
    mid_p,
    mid_two_sided_p,
    sign_flip_p,
    stratified_paired_p,
)
from coldrun.tasks.stats.paired_intervals import (
    PairedCounts,
    bonett_price_interval,
    conditional_odds_ratio,
    effect_sizes,
    newcombe_paired_interval,
    paired_errors,
    tango_interval,
    wald_paired_interval,
)
from tests.stats.vector_cases.registry import case, limits

Inputs = dict[str, Any]


@case("paired.sign_exact.")
def compute_sign_test(inputs: Inputs, expected: Any) -> Any:
    """The four p-values of a pair of discordant counts."""
    up, down = inputs["up"], inputs["down"]
    return {
        "one_sided": exact_paired_p(up, down),
        "two_sided": exact_paired_two_sided_p(up, down),
        "mid_one_sided": mid_p(up, down),
        "mid_two_sided": mid_two_sided_p(up, down),
    }


@case("paired.sign_exact.published_smucker_")
def compute_published_sign_test(inputs: Inputs, expected: Any) -> Any:
    """Published two-sided p-values."""
    return exact_paired_two_sided_p(inputs["k"], inputs["n"] - inputs["k"])


@case("paired.mcnemar.published_cavo2012")
def compute_published_mcnemar(inputs: Inputs, expected: Any) -> Any:
    """All forms of McNemar's test on a published table."""
    up, down = inputs["n12"], inputs["n21"]
    return {
        "exact_two_sided": exact_paired_two_sided_p(up, down),
        "mid_p": mid_two_sided_p(up, down),
        "chi2": chi_square_paired_p(up, down),
        "chi2_cc": chi_square_paired_p(up, down, is_corrected=True),
    }


@case("paired.min_up_for_significance")
def compute_min_ups(inputs: Inputs, expected: Any) -> Any:
    """The fewest ups that count, by downs."""
    alpha = inputs["alpha"]
    return {
        str(down): {
            "one_sided_05": find_min_up(down, alpha=alpha),
            "two_sided_05": find_min_up(down, alpha=alpha / 2),
        }
        for down in inputs["downs"]
    }


@case("paired.signflip_exact.d8", "paired.signflip_equals_mcnemar")
def compute_sign_flips(inputs: Inputs, expected: Any) -> Any:
    """Both tails of the sign-flip distribution."""
    differences = inputs["differences"]
    return {
        "greater": sign_flip_p(differences, seed=0),
        "two_sided": sign_flip_p(differences, seed=0, alternative="two-sided"),
    }


@case("paired.signflip_float_ties")
def compute_tied_sign_flips(inputs: Inputs, expected: Any) -> Any:
    """Sums that are equal but for rounding count as ties."""
    p = sign_flip_p(inputs["differences"], seed=0)
    return {"p": p, "naive_float_WRONG": p}


@case("paired.test_comparison_on_6_0_of_71")
def compute_comparison(inputs: Inputs, expected: Any) -> Any:
    """Ours beside the tests that are not used, which SciPy computes."""
    up, down, n = inputs["up"], inputs["down"], inputs["n"]
    differences = np.array([1.0] * up + [-1.0] * down + [0.0] * (n - up - down))
    moved = differences[differences != 0]
    return {
        "exact_two_sided": exact_paired_two_sided_p(up, down),
        "mid_p": mid_two_sided_p(up, down),
        "mcnemar_chi2": chi_square_paired_p(up, down),
        "mcnemar_chi2_cc": chi_square_paired_p(up, down, is_corrected=True),
        "ttest": float(stats.ttest_1samp(differences, 0.0).pvalue),
        "wilcoxon_scipy_default": float(stats.wilcoxon(differences).pvalue),
        # without zeros and with one size, the exact signed-rank test is the sign test
        "wilcoxon_exact": sign_flip_p(moved, seed=0, alternative="two-sided"),
    }


@case("paired.stratified_sign.")
def compute_stratified(inputs: Inputs, expected: Any) -> Any:
    """Discordant counts pooled over corpora."""
    return stratified_paired_p({name: tuple(pair) for name, pair in inputs["strata"].items()})


@case("null_gate.")
def compute_overlaps(inputs: Inputs, expected: Any) -> Any:
    """Every p that two totals allow."""
    hits, others = inputs.get("arm_hits"), inputs["null_hits"]
    if inputs.get("alternative") == "null > arm":
        hits, others = others, hits
    found = p_by_overlap(inputs["n"], hits=hits, other_hits=others)
    assert len(found) == len(expected)
    return {f"{up}_up_{down}_down": p for (up, down), p in found.items()}


@case("paired.diff_ci.published_case_")
def compute_difference_intervals(inputs: Inputs, expected: Any) -> Any:
    """Four intervals of one paired difference."""
    counts = PairedCounts(**{name: inputs[name] for name in ("both", "up", "down", "neither")})
    up, down, n = counts.up, counts.down, counts.n
    return {
        "diff": counts.difference,
        "newcombe10": limits(newcombe_paired_interval(counts)),
        "bonett_price": limits(bonett_price_interval(up, down, n)),
        "wald": limits(wald_paired_interval(up, down, n)),
        "tango": limits(tango_interval(up, down, n)),
    }


@case("paired.diff_ci.published_cavo2012")
def compute_published_intervals(inputs: Inputs, expected: Any) -> Any:
    """The same on a published table."""
    cells = dict(zip(("both", "up", "down", "neither"), inputs.values(), strict=True))
    found = compute_difference_intervals(cells, expected)
    return {**found, "newcombe": found["newcombe10"]}


@case("paired.conditional_odds_ratio.")
def compute_odds(inputs: Inputs, expected: Any) -> Any:
    """The share of ups and its odds."""
    odds = conditional_odds_ratio(inputs["up"], inputs["down"])
    assert odds is not None
    return {
        "share": odds.share,
        "share_ci": limits(odds.share_interval),
        "odds_ratio": odds.odds_ratio,
        "odds_ratio_ci": limits(odds.odds_ratio_interval),
    }


@case("effect.")
def compute_effects(inputs: Inputs, expected: Any) -> Any:
    """Magnitudes of one change."""
    found = effect_sizes(**inputs)
    return {
        "diff": found.difference,
        "cohen_h": found.cohen_h,
        "cohen_g": found.cohen_g,
        "relative": found.relative,
    }


@case("paired.variance_identity")
def compute_errors(inputs: Inputs, expected: Any) -> Any:
    """What pairing takes off the standard error."""
    both = inputs["both"]
    up, down = inputs["after"] - both, inputs["before"] - both
    counts = PairedCounts(both=both, up=up, down=down, neither=inputs["n"] - both - up - down)
    found = paired_errors(counts)
    return {
        "se_paired": found.paired,
        "se_unpaired": found.unpaired,
        "correlation": found.correlation,
    }


@case("paired.lower_bound_gate_table.n71")
def compute_gate_table(inputs: Inputs, expected: Any) -> Any:
    """Which rule calls k ups and no down a gain."""
    n, before, down = inputs["n"], inputs["before"], inputs["downs"]
    table = {}
    for up in inputs["ups"]:
        counts = PairedCounts(both=before - down, up=up, down=down, neither=n - before - up)
        table[str(up)] = {
            "exact_two_sided_le_05": exact_paired_two_sided_p(up, down) <= 0.05,
            "midp_two_sided_le_05": mid_two_sided_p(up, down) <= 0.05,
            "wald": wald_paired_interval(up, down, n).is_above(0),
            "newcombe10": newcombe_paired_interval(counts).is_above(0),
            "tango": tango_interval(up, down, n).is_above(0),
            "bonett_price": bonett_price_interval(up, down, n).is_above(0),
            "percentile_bootstrap": bootstrap_binary_difference(up, down, n).low > 0,
        }
    return table


@case("paired.gate_actual_size_under_null")
def compute_sizes(inputs: Inputs, expected: Any) -> Any:
    """How often each rule fires when nothing changed."""
    alpha = inputs["nominal_one_sided"]
    sizes: dict[str, Any] = {}
    for n in sorted({row["n"] for row in inputs["cases"]}):
        rules = {
            "exact": lambda up, down: exact_paired_p(up, down) <= alpha,
            "midp": lambda up, down: mid_p(up, down) <= alpha,
            "wald": lambda up, down, n=n: wald_paired_interval(up, down, n).is_above(0),
            "bonett_price": lambda up, down, n=n: bonett_price_interval(up, down, n).is_above(0),
            "percentile_bootstrap": lambda up, down, n=n: (
                up > down and net_change(n, up / n, down / n).at_most(0) < alpha
            ),
        }
        tables = {name: tabulate_rule(n, rule) for name, rule in rules.items()}
        for row in inputs["cases"]:
            rate = row["discordant_rate"]
            if row["n"] == n:
                sizes[f"n{n}_psi{float(f'{rate:.4f}')}"] = {
                    name: rejection_rate(table, rate / 2, rate / 2)
                    for name, table in tables.items()
                }
    return sizes
