"""Exact paired tests: binary outcomes by the discordant pairs, graded ones by flipping signs.

`up` counts tasks that the first arm has right and the second wrong, `down` the opposite. The gate
uses `exact_paired_p` and `sign_flip_p` alone; mid-p and the chi-square forms are printed or tested
against, never switched to.

Source: McNemar 1947; Fagerland, Lydersen & Laake 2013 (BMC Med Res Methodol 13:91) for mid-p;
Smucker, Allan & Carterette 2007 for randomisation tests in retrieval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.stats.flips import EXHAUSTIVE_TASKS, draw_flips, sum_flipped

FloatArray = NDArray[np.float64]
Alternative = Literal["greater", "two-sided"]

_EXACT_PAIRS = 4096
"""Up to this many discordant pairs p comes from whole numbers, correct to the last bit."""


def count_discordant(
    first: Sequence[float] | FloatArray, second: Sequence[float] | FloatArray
) -> tuple[int, int]:
    """Count the tasks where the first score is higher (up) and where it is lower (down)."""
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return int(np.count_nonzero(differences > 0)), int(np.count_nonzero(differences < 0))


def exact_paired_p(up: int, down: int) -> float:
    """Give the one-sided exact p that ups are likelier than downs: P(Bin(up+down, 1/2) >= up).

    Returns:
        1.0 when no pair is discordant: nothing was observed against the null hypothesis.
    """
    if up < 0 or down < 0:
        raise ValueError(f"counts of discordant tasks must not be negative: up {up}, down {down}")
    trials = up + down
    if up == 0:
        return 1.0
    if trials > _EXACT_PAIRS:
        return float(scipy.special.bdtrc(up - 1, trials, 0.5))
    if up <= down:  # the tail below is the shorter sum
        return ((1 << trials) - _count_outcomes(trials, trials - up + 1)) / (1 << trials)
    return _count_outcomes(trials, up) / (1 << trials)


def exact_paired_two_sided_p(up: int, down: int) -> float:
    """Give min(1, 2 x the smaller tail), the exact two-sided McNemar test."""
    return min(1.0, 2.0 * exact_paired_p(max(up, down), min(up, down)))


def mid_p(up: int, down: int) -> float:
    """Give the one-sided mid-p: the exact tail less half the probability of what was observed."""
    if up + down == 0:
        return 1.0
    return exact_paired_p(up, down) - 0.5 * _pmf(up, up + down)


def mid_two_sided_p(up: int, down: int) -> float:
    """Give the two-sided mid-p: both tails less one point mass; 1 - pmf/2 when up equals down."""
    trials = up + down
    if trials == 0:
        return 1.0
    mass = _pmf(up, trials)
    if up == down:
        return 1.0 - 0.5 * mass
    return exact_paired_two_sided_p(up, down) - mass


def chi_square_paired_p(up: int, down: int, *, is_corrected: bool = False) -> float:
    """Give the asymptotic two-sided McNemar p, for comparison only: it is too small at few pairs.

    Args:
        is_corrected: Whether to apply Edwards' continuity correction.
    """
    if up + down == 0:
        return 1.0
    distance = abs(up - down) - (1 if is_corrected else 0)
    return float(scipy.special.chdtrc(1, max(distance, 0) ** 2 / (up + down)))


def stratified_paired_p(strata: Mapping[str, tuple[int, int]]) -> float:
    """Give the exact one-sided p of (up, down) counts pooled over strata.

    Tasks are taken as independent within a stratum; the strata are fixed, not sampled. With every
    stratum's null share at 1/2 the convolution of their binomials is the pooled binomial.
    """
    return exact_paired_p(
        sum(up for up, _ in strata.values()), sum(down for _, down in strata.values())
    )


def find_min_up(down: int, *, alpha: float = 0.025) -> int:
    """Find the fewest ups that bring the one-sided exact p to `alpha` against `down` downs."""
    up = down
    while exact_paired_p(up, down) > alpha:
        up += 1
    return up


def sign_flip_p(
    differences: Sequence[float] | FloatArray,
    *,
    seed: int,
    resamples: int = 9999,
    alternative: Alternative = "greater",
) -> float:
    """Give the permutation p that the mean difference is above zero, by flipping task signs.

    Exhaustive up to 13 non-zero differences, and exact when all of them have one size (it is then
    the exact paired test); otherwise (1 + hits) / (1 + resamples) over seeded random signs. Zeros
    are kept in the definition and dropped in the computation: they double every count.

    Args:
        differences: One per task, first arm minus second; any scale.
        seed: Of the random signs; unused when the distribution is enumerated.
        resamples: Random sign vectors.
        alternative: "greater" for mean > 0; "two-sided" for the absolute mean.

    Returns:
        A p in (0, 1]; 1.0 when every difference is zero or there is none.

    Raises:
        ValueError: A difference is not finite.

    Source: Fisher's randomisation test; sums within a relative 1e-9 count as ties.
    """
    values = np.asarray(differences, dtype=np.float64).ravel()
    if not np.isfinite(values).all():
        raise ValueError("differences must be finite: score missing tasks as 0 before pairing")
    values = values[values != 0]
    if values.size == 0:
        return 1.0
    sizes = np.abs(values)
    if sizes.max() - sizes.min() <= 1e-9 * sizes.max():
        up = int(np.count_nonzero(values > 0))
        counts = (up, values.size - up)
        if alternative == "greater":
            return exact_paired_p(*counts)
        return exact_paired_two_sided_p(*counts)
    observed, tolerance = float(values.sum()), 1e-9 * float(sizes.sum())
    sums = sum_flipped(values, draw_flips(values.size, seed=seed, resamples=resamples))
    if alternative == "two-sided":
        observed, sums = abs(observed), np.abs(sums)
    hits = int(np.count_nonzero(sums >= observed - tolerance))
    return hits / len(sums) if values.size <= EXHAUSTIVE_TASKS else (1 + hits) / (1 + len(sums))


def _pmf(count: int, trials: int) -> float:
    return comb(trials, count) / (1 << trials)


def _count_outcomes(trials: int, at_least: int) -> int:
    """Count the outcomes of `trials` fair coins with `at_least` or more heads."""
    ways = comb(trials, at_least)
    total = ways
    for heads in range(at_least, trials):
        ways = ways * (trials - heads) // (heads + 1)
        total += ways
    return total
