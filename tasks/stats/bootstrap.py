"""Paired bootstrap over tasks: one shared draw of tasks for all arms, measures and pairs.

Source: Efron & Tibshirani 1993; Efron 1987 for BCa; SciPy's `bootstrap` is the oracle in tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.lib.arrays import FloatArray

EXHAUSTIVE_TASKS = 6
"""Up to this many tasks every resample is tried, 6^6 = 46,656 of them, and no seed matters."""

RESAMPLES = 9999

_BLOCK_CELLS = 200_000
"""Drawn tasks of a block; what fits the processor's cache."""


@dataclass(frozen=True, slots=True)
class BcaConstants:
    """What BCa moves the tails by: bias `z0`, `acceleration`, and the moved tail probabilities."""

    z0: float
    acceleration: float
    alpha_low: float
    alpha_high: float


def iterate_draws(n: int, *, seed: int, resamples: int) -> Iterator[NDArray[np.int32]]:
    """Yield blocks of rows of n task numbers drawn with replacement.

    `resamples` rows in all, or all n^n of them when there are at most 6 tasks.
    """
    if n <= EXHAUSTIVE_TASKS:
        yield np.indices((n,) * n, dtype=np.int32).reshape(n, -1).T
        return
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK_CELLS // n)
    for start in range(0, resamples, rows):
        yield generator.integers(0, n, size=(min(rows, resamples - start), n), dtype=np.int32)


def resample_means(columns: FloatArray, *, seed: int, resamples: int = RESAMPLES) -> FloatArray:
    """Give the mean of every column in every resample of tasks: shape (resamples, columns).

    Columns share the draws, so the difference of two result columns is a paired bootstrap. With at
    most 6 tasks it is the whole distribution, n^n rows.
    """
    n, width = columns.shape
    if n == 0:
        raise ValueError("a bootstrap needs at least one task")
    values = np.ascontiguousarray(columns, dtype=np.float64)
    rows_in_all = n**n if n <= EXHAUSTIVE_TASKS else resamples
    result: FloatArray = np.empty((rows_in_all, width))
    start = 0
    for drawn in iterate_draws(n, seed=seed, resamples=resamples):
        rows = len(drawn)
        ends = np.arange(0, rows * n + 1, n, dtype=np.int32)
        # ones at the drawn tasks, repeats kept apart: the product adds them up
        weights = scipy.sparse.csr_matrix((np.ones(rows * n), drawn.ravel(), ends), shape=(rows, n))
        result[start : start + rows] = weights @ values
        start += rows
    result /= n
    return result


def percentile_limits(means: FloatArray, *, confidence: float = 0.95) -> tuple[float, float]:
    """Give the inverse-CDF quantiles at both tails of a resampled statistic."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def bca_limits(
    values: FloatArray, means: FloatArray, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Give the BCa limits of the mean of `values`, interpolated between resampled means."""
    constants = bca_constants(values, means, confidence=confidence)
    low, high = np.quantile(means, [constants.alpha_low, constants.alpha_high])
    return float(low), float(high)


def bca_constants(
    values: FloatArray, means: FloatArray, *, confidence: float = 0.95
) -> BcaConstants:
    """Compute bias, acceleration and the moved tails of BCa for a mean.

    Ties of a resampled mean with the observed one count half, as SciPy has it, and within a
    relative 1e-12, because sums of floats in another order differ in their last bits. When every
    resampled mean lies on one side, the tails stay where the percentile interval has them.

    Source: Efron 1987; for a mean the jackknife acceleration is Σe³ / (6 (Σe²)^1.5), where e is
    the deviation from the mean.
    """
    observed = float(values.mean())
    deviations = values - observed
    spread = float((deviations**2).sum())
    if values.max() == values.min():
        raise ValueError("BCa is undefined when all values are equal")
    acceleration = float((deviations**3).sum()) / (6.0 * spread**1.5)
    tolerance = 1e-12 * max(1.0, float(np.abs(values).max()))
    below = np.count_nonzero(means < observed - tolerance)
    not_above = np.count_nonzero(means <= observed + tolerance)
    share = (below + not_above) / (2 * len(means))
    tail = (1 - confidence) / 2
    if not 0 < share < 1:
        return BcaConstants(0.0, acceleration, tail, 1 - tail)
    z0 = float(scipy.special.ndtri(share))

    def move(probability: float) -> float:
        shifted = z0 + float(scipy.special.ndtri(probability))
        return float(scipy.special.ndtr(z0 + shifted / (1 - acceleration * shifted)))

    return BcaConstants(z0, acceleration, move(tail), move(1 - tail))
