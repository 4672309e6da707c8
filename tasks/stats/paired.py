"""Exact paired tests and their power: by discordant pairs, or by flipping signs.

`up` counts tasks that the first arm has right and the second wrong, `down` the opposite.

Source: McNemar 1947; Smucker, Allan & Carterette 2007 for randomisation tests in retrieval; exact
unconditional power, cf. Connor 1987 (Biometrics 43:207).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.lib.arrays import FloatArray

PackedFlips = NDArray[np.uint8]
Alternative = Literal["greater", "two-sided"]

GATE_ALPHA = 0.025
"""One-sided level of the gate against each null; the upper half of a two-sided 0.05."""

_EXHAUSTIVE_TASKS = 13
"""Up to this many tasks all sign vectors are tried: 2^13 = 8,192 is below the usual 9,999."""

_EXACT_PAIRS = 4096
"""Up to this many discordant pairs p comes from whole numbers, correct to the last bit."""


def exact_paired_p(up: int, down: int) -> float:
    """Give the one-sided exact p that ups are likelier than downs: P(Bin(up+down, 1/2) >= up)."""
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
    sums = _sum_flipped(values, _draw_flips(values.size, seed=seed, resamples=resamples))
    if alternative == "two-sided":
        observed, sums = abs(observed), np.abs(sums)
    hits = int(np.count_nonzero(sums >= observed - tolerance))
    return hits / len(sums) if values.size <= _EXHAUSTIVE_TASKS else (1 + hits) / (1 + len(sums))


def adjust_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values so that any false rejection at all stays below alpha.

    Source: Holm 1979. Not Holm–Šidák, the default of statsmodels.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(
            f"p-values must lie in [0, 1], got {list(p_values)}; leave undefined comparisons out "
            "and count them"
        )
    order = np.argsort(p, kind="stable")
    steps = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return tuple(float(value) for value in adjusted)


def _count_outcomes(trials: int, at_least: int) -> int:
    ways = comb(trials, at_least)
    total = ways
    for heads in range(at_least, trials):
        ways = ways * (trials - heads) // (heads + 1)
        total += ways
    return total


def _draw_flips(tasks: int, *, seed: int, resamples: int) -> PackedFlips:
    # Shape (ceil(tasks / 8), resamples): the tasks of a byte from its lowest bit.
    width = (tasks + 7) // 8
    if tasks <= _EXHAUSTIVE_TASKS:
        codes = np.arange(2**tasks, dtype="<u2")
        return np.ascontiguousarray(codes.view(np.uint8).reshape(-1, 2)[:, :width].T)
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, size=(width, resamples), dtype=np.uint8)


def _sum_flipped(values: FloatArray, flips: PackedFlips) -> FloatArray:
    groups, resamples = flips.shape
    padded = np.zeros(groups * 8)
    padded[: values.size] = values
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    # by group of eight tasks and byte: what flipping those bits takes away from the plain sum
    lookup = 2.0 * padded.reshape(groups, 8) @ bits.T.astype(np.float64)
    sums: FloatArray = np.full(resamples, float(values.sum()))
    for table, chosen in zip(lookup, flips, strict=True):
        sums -= table.take(chosen)
    return sums


def find_critical_ups(n: int, *, alpha: float = 0.025) -> FloatArray:
    """Find, for each number m of discordant pairs up to n, the fewest ups with p <= alpha.

    m + 1 where no number of ups reaches `alpha`.
    """
    critical = np.ones(n + 1)
    ups = 1
    for discordant in range(1, n + 1):
        # P(Bin >= ups) grows with the pairs, so that the fewest ups never fall
        while ups <= discordant and scipy.special.bdtrc(ups - 1, discordant, 0.5) > alpha:
            ups += 1
        critical[discordant] = ups
    return critical


def exact_power(
    n: int,
    p_up: float,
    p_down: float,
    *,
    alpha: float = 0.025,
    critical: FloatArray | None = None,
) -> float:
    """Give the probability that the exact paired test shows a gain.

    The sum over discordant m of Bin(m; n, p_up + p_down) x P(Bin(m, p_up share) >= critical).
    """
    discordance = p_up + p_down
    if min(p_up, p_down) < 0 or discordance > 1 + 1e-12:
        raise ValueError(
            f"p_up {p_up} and p_down {p_down} must not be negative nor exceed 1 together"
        )
    if discordance < 1e-100:  # SciPy overflows there, and no task would ever move
        return 0.0
    needed = find_critical_ups(n, alpha=alpha) if critical is None else critical
    discordant = np.arange(n + 1)
    weights = _binomial_weights(n, min(1.0, discordance))
    reach = scipy.special.bdtrc(needed - 1.0, discordant, p_up / discordance)
    return float(weights @ np.where(needed > discordant, 0.0, reach))


def _binomial_weights(n: int, p: float) -> FloatArray:
    m = np.arange(n + 1)
    special = scipy.special
    ways = special.gammaln(n + 1) - special.gammaln(m + 1) - special.gammaln(n - m + 1)
    weights: FloatArray = np.exp(ways + special.xlogy(m, p) + special.xlog1py(n - m, -p))
    return weights


def minimum_detectable_effect(
    n: int, *, regression_rate: float = 0.0, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Find the true net gain, in tasks, that the exact test shows with the wanted power.

    `alpha` is two-sided. None when even a gain on every task that does not regress is not shown.
    """
    critical = find_critical_ups(n, alpha=alpha / 2)
    ceiling = 1.0 - regression_rate

    def exceed(p_up: float) -> float:
        return exact_power(n, p_up, regression_rate, critical=critical) - power

    if n < 1 or exceed(ceiling) < 0:
        return None
    low, high = 0.0, ceiling  # halved: importing an optimizer takes longer than all of a report
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if exceed(middle) < 0 else (low, middle)
    return n * (high - regression_rate)
