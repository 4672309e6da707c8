"""Intervals of a rate, a mean, and a paired difference. Two-sided 95 % unless said otherwise.

Source: Brown, Cai & DasGupta 2001 (Stat. Sci. 16:101) for rates; Bowyer et al. (arXiv:2503.01747)
on why the normal approximation is not used below a few hundred tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
import scipy

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.stats.bootstrap import RESAMPLES, bca_limits, resample_means


@dataclass(frozen=True, slots=True)
class Interval:
    """Limits of a confidence interval, `low <= high`."""

    low: float
    high: float


def wilson_interval(count: int, n: int, confidence: float = 0.95) -> Interval:
    """Give Wilson's score interval of a rate: the default for every rate that is printed.

    Source: Wilson 1927. Low is exactly 0 at count 0 and high exactly 1 at count n; [0, 1] without
    tasks.
    """
    if not 0 <= count <= n:
        raise ValueError(f"a count of successes must lie between 0 and n: count {count}, n {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    z = _quantile(confidence)
    rate = count / n
    center = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if count == 0 else max(0.0, center - half)
    high = 1.0 if count == n else min(1.0, center + half)
    return Interval(low, high)


def population_interval(
    value: float, count: int | None, n: int, population: int, limits: tuple[float, float]
) -> Interval:
    """Give the interval of the mean of a finite population from n of its tasks, drawn at random.

    Args:
        value: The mean over the n tasks, in [0, 1].
        count: The successes, None where tasks score fractions.
        n: The tasks that were drawn; of all of them the mean is known.
        population: How many they were drawn from, at least n.
        limits: The interval for tasks to come, which is narrowed where there is no count.

    Source: Cochran 1977, Sampling Techniques, 2.8, on the variance in Wilson's score interval.
    """
    share = sqrt((population - n) / (population - 1)) if population > n else 0.0
    if count is None or share == 0:
        return Interval(value - (value - limits[0]) * share, value + (limits[1] - value) * share)
    found = wilson_interval(count, n, 1 - 2 * NormalDist().cdf(-_quantile(0.95) * share))
    return Interval(
        max(found.low, count / population), min(found.high, 1 - (n - count) / population)
    )


def newcombe_independent_interval(
    first: tuple[int, int], second: tuple[int, int], confidence: float = 0.95
) -> Interval:
    """Give the interval of a difference of rates over different tasks, first minus second.

    Each sample is (successes, tasks). Source: Newcombe 1998 (Stat Med 17:873), method 10.
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
    values: Sequence[float] | FloatArray,
    seed: int,
    *,
    confidence: float = 0.95,
) -> Interval:
    """Give the BCa bootstrap interval of the mean of a graded measure over tasks.

    [v, v] when all values are v, where BCa is 0/0: the data did not vary, which does not say that
    the value is known exactly.
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    return mean_intervals(column, seed, confidence=confidence)[0]


def mean_intervals(
    columns: FloatArray,
    seed: int,
    *,
    pairs: Sequence[tuple[int, int]] = (),
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> tuple[Interval, ...]:
    """Give the interval of `mean_interval` for many columns from one shared draw of tasks.

    One interval per column of shape (tasks, columns), then one per pair of columns (first minus
    second); each comes out as if it had been asked for alone with the same seed.

    Source: Efron 1987; `scipy.stats.bootstrap(method="BCa", paired=True)`.
    """
    if len(columns) == 0 or not np.isfinite(columns).all():
        raise ValueError("a mean needs at least one task and finite values only")
    means = resample_means(columns, seed=seed, resamples=resamples)
    data = [*columns.T, *(columns[:, first] - columns[:, second] for first, second in pairs)]
    resampled = [*means.T, *(means[:, first] - means[:, second] for first, second in pairs)]
    return tuple(
        Interval(float(values[0]), float(values[0]))
        if values.max() == values.min()
        else Interval(*bca_limits(values, distribution, confidence=confidence))
        for values, distribution in zip(data, resampled, strict=True)
    )


def bonett_price_interval(up: int, down: int, n: int, confidence: float = 0.95) -> Interval:
    """Give the adjusted Wald interval of a paired difference of rates, (up - down)/n.

    Reports print this one: it agrees with the exact gate at n = 71, where its lower limit clears
    zero from six ups and no down.

    Source: Bonett & Price 2012, with one added to each discordant count and two to n.
    """
    if n < 1 or up < 0 or down < 0 or up + down > n:
        raise ValueError(
            "a paired difference needs tasks, and no more discordant ones than tasks: "
            f"up {up}, down {down}, n {n}"
        )
    p_up, p_down = (up + 1) / (n + 2), (down + 1) / (n + 2)
    difference = p_up - p_down
    half = _quantile(confidence) * sqrt((p_up + p_down - difference**2) / (n + 2))
    return Interval(max(-1.0, difference - half), min(1.0, difference + half))


def paired_interval(differences: FloatArray, seed: int, *, confidence: float = 0.95) -> Interval:
    """Give the interval of a paired mean difference of scores in [0, 1].

    Bonett–Price where every task goes up, down or stays, else BCa bootstrap. A fraction on a single
    task bounds nothing: [-1, 1].
    """
    return paired_intervals([differences], seed, confidence=confidence)[0]


def paired_intervals(
    differences: Sequence[FloatArray], seed: int, *, confidence: float = 0.95
) -> list[Interval]:
    """Give the interval of `paired_interval` for many differences from one shared draw of tasks."""
    found: dict[int, Interval] = {}
    graded: dict[int, FloatArray] = {}
    for place, values in enumerate(map(without_dust, differences)):
        if bool(np.isin(values, (-1.0, 0.0, 1.0)).all()):
            up, down = int((values > 0).sum()), int((values < 0).sum())
            found[place] = bonett_price_interval(up, down, len(values), confidence)
        elif len(values) == 1:
            found[place] = Interval(-1.0, 1.0)
        else:
            graded[place] = values
    if graded:
        columns = np.column_stack(list(graded.values()))
        found |= zip(graded, mean_intervals(columns, seed, confidence=confidence), strict=True)
    return [found[place] for place in range(len(differences))]


def without_dust(differences: FloatArray) -> FloatArray:
    """Round off what adding fractions in another order leaves in differences of scores."""
    rounded: FloatArray = np.round(differences, 12)
    return rounded


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf(1 - (1 - confidence) / 2)


@dataclass(frozen=True, slots=True)
class MrrBounds:
    """The least and most that MRR can be, given hits at cut-offs.

    `high` holds for a list cut at the deepest cut-off, `high_uncut` for an endless one.
    """

    low: float
    high: float
    high_uncut: float

    def is_possible(self, value: float, *, decimals: int, is_cut: bool = True) -> bool:
        """Whether a printed MRR fits, allowing for its rounding."""
        slack = 0.5 * 10.0**-decimals + 1e-12
        return self.low - slack <= value <= (self.high if is_cut else self.high_uncut) + slack


def bound_mrr(n: int, hits: Mapping[int, int]) -> MrrBounds:
    """Bound the mean reciprocal rank of n tasks by the number of hits at each cut-off.

    Each new hit ranks just above its cut-off at best, and at it at worst.
    """
    low = high = 0.0
    earlier_cutoff = earlier = 0
    for cutoff in sorted(hits):
        fresh = hits[cutoff] - earlier
        if fresh < 0 or hits[cutoff] > n:
            raise ValueError(f"hits must not fall with the cut-off nor exceed {n}: {dict(hits)}")
        low += fresh / cutoff
        high += fresh / (earlier_cutoff + 1)
        earlier_cutoff, earlier = cutoff, hits[cutoff]
    if not hits or n < 1:
        raise ValueError("bounding MRR needs hits at a cut-off, and tasks")
    return MrrBounds(
        low=low / n,
        high=high / n,
        high_uncut=(high + (n - earlier) / (earlier_cutoff + 1)) / n,
    )


@dataclass(frozen=True, slots=True)
class DevSealedGap:
    """Dev rate minus sealed rate, unpaired because the tasks differ, with Fisher's two-sided p."""

    difference: float
    interval: Interval
    p: float


def compare_dev_sealed(dev: tuple[int, int], sealed: tuple[int, int]) -> DevSealedGap:
    """Compare the two parts of a panel, each as (hits, tasks).

    An interval wholly above 0 says that the dev part was tuned on.

    Source: Newcombe 1998 (Stat Med 17:873); Fisher's exact test.
    """
    interval = newcombe_independent_interval(dev, sealed)
    table = np.array([[dev[0], dev[1] - dev[0]], [sealed[0], sealed[1] - sealed[0]]])
    return DevSealedGap(
        difference=dev[0] / dev[1] - sealed[0] / sealed[1],
        interval=interval,
        p=float(scipy.stats.fisher_exact(table).pvalue),
    )
