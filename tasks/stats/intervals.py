"""Intervals of one rate or one mean. Two-sided 95 % unless said otherwise.

Source: Brown, Cai & DasGupta 2001 (Stat. Sci. 16:101) for rates; Bowyer et al. (arXiv:2503.01747)
on why the normal approximation is not used below a few hundred tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.stats.bootstrap import bca_limits, resample_means

Side = Literal["both", "lower", "upper"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Limits of a confidence interval, `low <= high`.

    `is_degenerate` marks an interval of no width that only says that the data did not vary, not
    that the value is known exactly.
    """

    low: float
    high: float
    is_degenerate: bool = False

    def is_above(self, value: float) -> bool:
        """Say whether the whole interval lies above `value`."""
        return self.low > value


def wilson_interval(
    count: int, n: int, confidence: float = 0.95, *, side: Side = "both"
) -> Interval:
    """Give Wilson's score interval of a rate: the default for every rate that is printed.

    Args:
        count: Successes, from 0 to `n`.
        n: Tasks. With 0 tasks nothing is known: the interval is [0, 1].
        side: "lower" gives [bound, 1] and "upper" [0, bound], each at full `confidence`.

    Raises:
        ValueError: `count` is outside 0 to `n`.

    Source: Wilson 1927. Low is exactly 0 at count 0 and high exactly 1 at count n.
    """
    _check_count(count, n)
    if n == 0:
        return Interval(0.0, 1.0)
    z = _quantile(confidence, side)
    rate = count / n
    center = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if count == 0 or side == "upper" else max(0.0, center - half)
    high = 1.0 if count == n or side == "lower" else min(1.0, center + half)
    return Interval(low, high)


def clopper_pearson_interval(
    count: int, n: int, confidence: float = 0.95, *, side: Side = "both"
) -> Interval:
    """Give the exact interval, whose coverage is at least `confidence` for every true rate.

    With 0 of n the one-sided upper limit is 1 - alpha^(1/n) (the exact "rule of three").

    Raises:
        ValueError: `count` is outside 0 to `n`.

    Source: Clopper & Pearson 1934.
    """
    _check_count(count, n)
    if n == 0:
        return Interval(0.0, 1.0)
    alpha = (1 - confidence) / (2 if side == "both" else 1)
    low = high = 0.0
    if count > 0 and side != "upper":
        low = float(scipy.special.betaincinv(count, n - count + 1, alpha))
    if count == n or side == "lower":
        high = 1.0
    else:
        high = float(scipy.special.betainccinv(count + 1, n - count, alpha))
    return Interval(low, high)


def jeffreys_interval(count: int, n: int, confidence: float = 0.95) -> Interval:
    """Give the equal-tailed interval of Jeffreys' prior, with 0 and 1 forced at the ends.

    Raises:
        ValueError: `count` is outside 0 to `n`.

    Source: Brown, Cai & DasGupta 2001, with their rule for the ends.
    """
    _check_count(count, n)
    tail = (1 - confidence) / 2
    shape = (count + 0.5, n - count + 0.5)
    low = 0.0 if count == 0 else float(scipy.special.betaincinv(*shape, tail))
    high = 1.0 if count == n else float(scipy.special.betainccinv(*shape, tail))
    return Interval(low, high)


def agresti_coull_interval(count: int, n: int, confidence: float = 0.95) -> Interval:
    """Give the interval that adds z²/2 successes and failures, clipped to [0, 1].

    Raises:
        ValueError: `count` is outside 0 to `n`.

    Source: Agresti & Coull 1998.
    """
    _check_count(count, n)
    z = _quantile(confidence, "both")
    total = n + z * z
    rate = (count + z * z / 2) / total
    half = z * sqrt(rate * (1 - rate) / total)
    return Interval(max(0.0, rate - half), min(1.0, rate + half))


def wald_interval(count: int, n: int, confidence: float = 0.95) -> Interval:
    """Give the normal approximation, only to show what it does; no report prints it.

    At 0 or n successes it has no width, which it wears as certainty: `is_degenerate`.

    Raises:
        ValueError: `count` is outside 0 to `n`, or `n` is 0.
    """
    _check_count(count, n)
    if n == 0:
        raise ValueError("the normal approximation needs at least one task")
    rate = count / n
    half = _quantile(confidence, "both") * sqrt(rate * (1 - rate) / n)
    return Interval(rate - half, rate + half, is_degenerate=half == 0)


def newcombe_independent_interval(
    first: tuple[int, int], second: tuple[int, int], confidence: float = 0.95
) -> Interval:
    """Give the interval of a difference of rates over different tasks, first minus second.

    Args:
        first: Successes and tasks of the first sample, e.g. dev.
        second: Successes and tasks of the second, e.g. sealed.

    Raises:
        ValueError: A sample is empty or its count outside 0 to n.

    Source: Newcombe 1998 (Stat Med 17:873), method 10.
    """
    if first[1] == 0 or second[1] == 0:
        raise ValueError("a difference of rates needs at least one task on each side")
    rate_a, rate_b = first[0] / first[1], second[0] / second[1]
    wilson_a, wilson_b = (wilson_interval(*sample, confidence) for sample in (first, second))
    difference = rate_a - rate_b
    return Interval(
        difference - sqrt((rate_a - wilson_a.low) ** 2 + (wilson_b.high - rate_b) ** 2),
        difference + sqrt((wilson_a.high - rate_a) ** 2 + (rate_b - wilson_b.low) ** 2),
    )


def mean_interval(
    values: Sequence[float] | NDArray[np.float64],
    seed: int,
    *,
    confidence: float = 0.95,
    resamples: int = 9999,
) -> Interval:
    """Give the BCa bootstrap interval of the mean of a graded measure over tasks.

    Args:
        values: One number per task, trials already averaged; any scale.
        seed: Of the resampling, derived from the panel hash.

    Returns:
        [v, v] with `is_degenerate` when all values are v (BCa is 0/0 there).

    Raises:
        ValueError: There is no value, or one is not finite.

    Source: Efron 1987; `scipy.stats.bootstrap(method="BCa")`.
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    return mean_intervals(column, seed, confidence=confidence, resamples=resamples)[0]


def mean_intervals(
    columns: NDArray[np.float64],
    seed: int,
    *,
    pairs: Sequence[tuple[int, int]] = (),
    confidence: float = 0.95,
    resamples: int = 9999,
) -> tuple[Interval, ...]:
    """Give the interval of `mean_interval` for many columns from one shared draw of tasks.

    For a whole report this is the call: arms and measures are columns, and each comes out as if
    it had been asked for alone with the same seed.

    Args:
        columns: Shape (tasks, columns).
        seed: Of the resampling, derived from the panel hash.
        pairs: Columns (first, second) whose paired difference, first minus second, is wanted too.

    Returns:
        One interval per column, then one per pair.

    Raises:
        ValueError: There is no task, or a value is not finite.

    Source: Efron 1987; `scipy.stats.bootstrap(method="BCa", paired=True)`.
    """
    if len(columns) == 0 or not np.isfinite(columns).all():
        raise ValueError("a mean needs at least one task and finite values only")
    means = resample_means(columns, seed=seed, resamples=resamples)
    data = [*columns.T, *(columns[:, first] - columns[:, second] for first, second in pairs)]
    resampled = [*means.T, *(means[:, first] - means[:, second] for first, second in pairs)]
    return tuple(
        _bca_interval(values, distribution, confidence)
        for values, distribution in zip(data, resampled, strict=True)
    )


def _bca_interval(
    values: NDArray[np.float64], means: NDArray[np.float64], confidence: float
) -> Interval:
    if values.max() == values.min():
        return Interval(float(values[0]), float(values[0]), is_degenerate=True)
    return Interval(*bca_limits(values, means, confidence=confidence))


def _quantile(confidence: float, side: Side) -> float:
    alpha = (1 - confidence) / (2 if side == "both" else 1)
    return float(scipy.special.ndtri(1 - alpha))


def _check_count(count: int, n: int) -> None:
    if not 0 <= count <= n:
        raise ValueError(f"a count of successes must lie between 0 and n: count {count}, n {n}")
