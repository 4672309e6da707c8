"""Intervals of a paired difference of rates, and effect sizes.

Bonett–Price is the one that reports print: it is the interval that agrees with the exact gate at
n = 71 (its lower limit clears zero from six ups and no down). The others are for comparison.
Rates and differences are shares; write them as percentage points, not percent.

Source: Bonett & Price 2012; Newcombe 1998 (Stat Med 17:2635, method 10); Tango 1998 (Stat Med
17:891); Fagerland, Lydersen & Laake 2014 (Stat Med 33:2850).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import asin, inf, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.stats.intervals import (
    Interval,
    clopper_pearson_interval,
    mean_interval,
    wilson_interval,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCounts:
    """Two arms on the same tasks: both right, only the first (up), only the second, neither."""

    both: int
    up: int
    down: int
    neither: int

    @property
    def n(self) -> int:
        """All tasks."""
        return self.both + self.up + self.down + self.neither

    @property
    def difference(self) -> float:
        """First rate minus second, in [-1, 1]."""
        return (self.up - self.down) / self.n


def bonett_price_interval(up: int, down: int, n: int, confidence: float = 0.95) -> Interval:
    """Give the adjusted Wald interval of (up - down)/n, the one to print.

    Args:
        up: Tasks that only the first arm has right.
        down: Tasks that only the second has right.
        n: All tasks, from 1.

    Raises:
        ValueError: There is no task, or more discordant tasks than tasks.

    Source: Bonett & Price 2012, with one added to each discordant count and two to n.
    """
    _check(up, down, n)
    p_up, p_down = (up + 1) / (n + 2), (down + 1) / (n + 2)
    difference = p_up - p_down
    half = _quantile(confidence) * sqrt((p_up + p_down - difference**2) / (n + 2))
    return Interval(max(-1.0, difference - half), min(1.0, difference + half))


def paired_interval(differences: FloatArray, seed: int, *, confidence: float = 0.95) -> Interval:
    """The interval of a paired mean difference: Bonett–Price where every task goes up, down or
    stays, else BCa bootstrap. Shape (tasks,), scores in [0, 1] subtracted. A fraction of one task
    alone bounds nothing.
    """
    differences = without_dust(differences)
    if bool(np.isin(differences, (-1.0, 0.0, 1.0)).all()):
        up, down = int((differences > 0).sum()), int((differences < 0).sum())
        return bonett_price_interval(up, down, len(differences), confidence)
    if len(differences) == 1:
        return Interval(-1.0, 1.0)
    return mean_interval(differences, seed, confidence=confidence)


def without_dust(differences: FloatArray) -> FloatArray:
    """Differences of scores without what adding fractions in another order leaves."""
    rounded: FloatArray = np.round(differences, 12)
    return rounded


def wald_paired_interval(up: int, down: int, n: int, confidence: float = 0.95) -> Interval:
    """Give the unadjusted interval, for comparison only: it is too short for small panels."""
    _check(up, down, n)
    difference = (up - down) / n
    half = _quantile(confidence) * sqrt(((up + down) / n - difference**2) / n)
    return Interval(difference - half, difference + half, is_degenerate=half == 0)


def newcombe_paired_interval(counts: PairedCounts, confidence: float = 0.95) -> Interval:
    """Give Newcombe's method 10: Wilson limits of both rates, joined through their correlation.

    Source: Newcombe 1998 (Stat Med 17:2635), with his continuity correction of phi.
    """
    n = counts.n
    _check(counts.up, counts.down, n)
    first, second = counts.both + counts.up, counts.both + counts.down
    rate_a, rate_b = first / n, second / n
    wilson_a, wilson_b = (wilson_interval(k, n, confidence) for k in (first, second))
    phi = _correct_phi(counts)
    low_a, high_b = rate_a - wilson_a.low, wilson_b.high - rate_b
    high_a, low_b = wilson_a.high - rate_a, rate_b - wilson_b.low
    return Interval(
        counts.difference - sqrt(low_a**2 - 2 * phi * low_a * high_b + high_b**2),
        counts.difference + sqrt(high_a**2 - 2 * phi * high_a * low_b + low_b**2),
    )


def tango_interval(up: int, down: int, n: int, confidence: float = 0.95) -> Interval:
    """Give the score interval of (up - down)/n, by inverting Tango's test.

    Source: Tango 1998 (Stat Med 17:891).
    """
    _check(up, down, n)
    z = _quantile(confidence)
    estimate = (up - down) / n

    def score(delta: float) -> float:
        linear = -up - down + (2 * n - up + down) * delta
        constant = -down * delta * (1 - delta)
        p_down = (sqrt(max(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
        variance = n * (2 * p_down + delta * (1 - delta))
        gap = up - down - n * delta
        if variance <= 0:
            return 0.0 if gap == 0 else (inf if gap > 0 else -inf)
        return gap / sqrt(variance)

    def solve(target: float, bound: float) -> float:
        edge = bound * (1 - 1e-12)
        if (score(edge) - target) * (score(estimate) - target) > 0:
            return bound
        return float(scipy.optimize.brentq(lambda x: score(x) - target, edge, estimate, xtol=1e-12))

    low = -1.0 if estimate <= -1 else solve(z, -1.0)
    high = 1.0 if estimate >= 1 else solve(-z, 1.0)
    return Interval(low, high)


@dataclass(frozen=True, slots=True)
class ConditionalOdds:
    """The share of ups among discordant tasks, and as odds up/down (inf without downs)."""

    share: float
    share_interval: Interval
    odds_ratio: float
    odds_ratio_interval: Interval


def conditional_odds_ratio(up: int, down: int, confidence: float = 0.95) -> ConditionalOdds | None:
    """Give up/down with exact limits, None without a discordant task.

    The share's lower limit exceeds 1/2 exactly when the two-sided exact p is below 1 - confidence.

    Source: Clopper–Pearson limits of up/(up + down), mapped by x/(1 - x).
    """
    if up + down == 0:
        return None
    limits = clopper_pearson_interval(up, up + down, confidence)
    return ConditionalOdds(
        share=up / (up + down),
        share_interval=limits,
        odds_ratio=up / down if down else inf,
        odds_ratio_interval=Interval(_to_odds(limits.low), _to_odds(limits.high)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSizes:
    """Magnitudes of a change between two rates on the same tasks.

    `difference` in shares (times 100: percentage points); `relative` to the first rate, None when
    that is 0; Cohen's `h` of the two rates; Cohen's `g` of the discordant pairs, None without any.
    """

    difference: float
    relative: float | None
    cohen_h: float
    cohen_g: float | None


def effect_sizes(*, before: int, after: int, n: int, up: int, down: int) -> EffectSizes:
    """Compute effect sizes of `before` of n becoming `after` of n.

    Raises:
        ValueError: There is no task, or the counts contradict each other.

    Source: Cohen 1988.
    """
    _check(up, down, n)
    if before + up - down != after:
        raise ValueError(f"{before} + {up} up - {down} down is not {after}: check the pairing")
    arcs = [2 * asin(sqrt(count / n)) for count in (before, after)]
    return EffectSizes(
        difference=(after - before) / n,
        relative=(after - before) / before if before else None,
        cohen_h=arcs[1] - arcs[0],
        cohen_g=up / (up + down) - 0.5 if up + down else None,
    )


@dataclass(frozen=True, slots=True)
class PairedErrors:
    """Standard errors of a difference of rates with and without pairing, and the correlation.

    `correlation` is None when an arm's outcomes do not vary.
    """

    paired: float
    unpaired: float
    correlation: float | None


def paired_errors(counts: PairedCounts) -> PairedErrors:
    """Show what pairing buys: Var(difference) = p1 q1 + p2 q2 - 2 cov, over n.

    Source: Miller 2024 (arXiv:2411.00640).
    """
    n = counts.n
    rate_a, rate_b = (counts.both + counts.up) / n, (counts.both + counts.down) / n
    spread_a, spread_b = rate_a * (1 - rate_a), rate_b * (1 - rate_b)
    covariance = counts.both / n - rate_a * rate_b
    is_varied = spread_a > 0 and spread_b > 0
    return PairedErrors(
        paired=sqrt(max(0.0, spread_a + spread_b - 2 * covariance) / n),
        unpaired=sqrt((spread_a + spread_b) / n),
        correlation=covariance / sqrt(spread_a * spread_b) if is_varied else None,
    )


def _correct_phi(counts: PairedCounts) -> float:
    rows = (counts.both + counts.up) * (counts.down + counts.neither)
    columns = (counts.both + counts.down) * (counts.up + counts.neither)
    if rows * columns == 0:
        return 0.0
    product = float(counts.both * counts.neither - counts.up * counts.down)
    if product > 0:
        product = max(product - counts.n / 2, 0.0)
    return product / sqrt(rows * columns)


def _to_odds(share: float) -> float:
    return inf if share >= 1 else share / (1 - share)


def _quantile(confidence: float) -> float:
    return float(scipy.special.ndtri(1 - (1 - confidence) / 2))


def _check(up: int, down: int, n: int) -> None:
    if n < 1 or up < 0 or down < 0 or up + down > n:
        raise ValueError(
            f"a paired difference needs tasks, and no more discordant ones than tasks: up {up}, "
            f"down {down}, n {n}"
        )
