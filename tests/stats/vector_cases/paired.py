"""Paired tests, and intervals of paired differences."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from scipy import stats

from coldrun.tasks.stats.intervals import bonett_price_interval
from coldrun.tasks.stats.paired import exact_paired_p, exact_paired_two_sided_p, sign_flip_p
from coldrun.tasks.stats.power import exact_power
from tests.stats.vector_cases.registry import case, limits

Inputs = dict[str, Any]


@case("paired.sign_exact.")
def compute_sign_test(inputs: Inputs, expected: Any) -> Any:
    """Both p-values of a pair of discordant counts."""
    up, down = inputs["up"], inputs["down"]
    return {
        "one_sided": exact_paired_p(up, down),
        "two_sided": exact_paired_two_sided_p(up, down),
    }


@case("paired.sign_exact.published_smucker_")
def compute_published_sign_test(inputs: Inputs, expected: Any) -> Any:
    """Published two-sided p-values."""
    return exact_paired_two_sided_p(inputs["k"], inputs["n"] - inputs["k"])


@case("paired.mcnemar.published_cavo2012")
def compute_published_mcnemar(inputs: Inputs, expected: Any) -> Any:
    """The exact form on a published table."""
    return {"exact_two_sided": exact_paired_two_sided_p(inputs["n12"], inputs["n21"])}


@case("paired.min_up_for_significance")
def compute_min_ups(inputs: Inputs, expected: Any) -> Any:
    """The fewest ups that count, by downs."""

    def fewest(down: int, alpha: float) -> int:
        return next(up for up in count(down) if exact_paired_p(up, down) <= alpha)

    return {
        str(down): {
            "one_sided_05": fewest(down, inputs["alpha"]),
            "two_sided_05": fewest(down, inputs["alpha"] / 2),
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
        "ttest": float(stats.ttest_1samp(differences, 0.0).pvalue),
        "wilcoxon_scipy_default": float(stats.wilcoxon(differences).pvalue),
        # without zeros and with one size, the exact signed-rank test is the sign test
        "wilcoxon_exact": sign_flip_p(moved, seed=0, alternative="two-sided"),
    }


@case("null_gate.")
def compute_overlaps(inputs: Inputs, expected: Any) -> Any:
    """Every p that two totals allow."""
    n, hits, others = inputs["n"], inputs.get("arm_hits"), inputs["null_hits"]
    if inputs.get("alternative") == "null > arm":
        hits, others = others, hits
    overlaps = range(max(0, hits + others - n), min(hits, others) + 1)
    assert len(overlaps) == len(expected)
    return {
        f"{hits - both}_up_{others - both}_down": exact_paired_p(hits - both, others - both)
        for both in overlaps
    }


@case("paired.diff_ci.published_case_")
def compute_difference_intervals(inputs: Inputs, expected: Any) -> Any:
    """The interval of a paired difference that reports print."""
    both, up, down, neither = (inputs[name] for name in ("both", "up", "down", "neither"))
    n = both + up + down + neither
    return {"diff": (up - down) / n, "bonett_price": limits(bonett_price_interval(up, down, n))}


@case("paired.diff_ci.published_cavo2012")
def compute_published_intervals(inputs: Inputs, expected: Any) -> Any:
    """The same on a published table."""
    cells = dict(zip(("both", "up", "down", "neither"), inputs.values(), strict=True))
    return compute_difference_intervals(cells, expected)


@case("paired.lower_bound_gate_table.n71")
def compute_gate_table(inputs: Inputs, expected: Any) -> Any:
    """The test and the interval call the same numbers of ups a gain."""
    n, down = inputs["n"], inputs["downs"]
    return {
        str(up): {
            "exact_two_sided_le_05": exact_paired_two_sided_p(up, down) <= 0.05,
            "bonett_price": bonett_price_interval(up, down, n).low > 0,
        }
        for up in inputs["ups"]
    }


@case("paired.gate_actual_size_under_null")
def compute_sizes(inputs: Inputs, expected: Any) -> Any:
    """How often the exact test fires when nothing changed: its power at equal chances."""
    alpha = inputs["nominal_one_sided"]
    return {
        f"n{row['n']}_psi{float(f'{rate:.4f}')}": {
            "exact": exact_power(row["n"], rate / 2, rate / 2, alpha=alpha)
        }
        for row in inputs["cases"]
        for rate in [row["discordant_rate"]]
    }
