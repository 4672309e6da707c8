"""How far a score moves when nothing changed: the noise floor, from repeated runs of one code.

Tasks are taken to flip independently. A shock to a whole run (a fallback that answers everything)
breaks that, so the standard deviation of run totals is kept beside the flips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.stats.intervals import clopper_pearson_interval
from coldrun.tasks.stats.net_change import net_change
from coldrun.tasks.stats.paired import exact_paired_p

FloatArray = NDArray[np.float64]
NoiseVerdict = Literal["PASS", "NOISE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """What repeated runs of the same code show, for one arm at one point.

    Tasks unless said otherwise. `expected_discordant` is how many tasks differ between two runs
    on average; `net_sd` the standard deviation of the net change between two runs, its square
    root; `flip_rate_upper` the 95 % upper limit of the chance that a task differs, which is what
    comparisons use; `band` the net change that two runs stay within 95 % of the time at that
    limit. `total_sd` is that of the run totals as observed, None with one run.
    """

    n: int
    runs: int
    expected_discordant: float
    net_sd: float
    flip_rate: float
    flip_rate_upper: float
    discordant_upper: float
    band: int
    total_sd: float | None


def estimate_noise_floor(outcomes: Sequence[Sequence[float]] | FloatArray) -> NoiseFloor | None:
    """Estimate the floor from the same tasks answered R times.

    Args:
        outcomes: Shape (runs, tasks), 0 or 1.

    Returns:
        None with a single run: no floor is known then, and a report says so.

    The upper limit is exact for flips counted over floor(R/2) independent pairs of runs, the
    first with the second and so on, so it never counts one run twice.
    """
    table = np.asarray(outcomes, dtype=np.float64)
    runs, n = table.shape
    if runs < 2 or n == 0:
        return None
    expected = float(flip_probabilities(table.sum(axis=0), runs).sum())
    pairs = runs // 2
    flips = int(np.count_nonzero(table[0 : 2 * pairs : 2] != table[1 : 2 * pairs : 2]))
    upper = upper_flip_rate(flips, n * pairs)
    return NoiseFloor(
        n=n,
        runs=runs,
        expected_discordant=expected,
        net_sd=sqrt(expected),
        flip_rate=expected / n,
        flip_rate_upper=upper,
        discordant_upper=n * upper,
        band=net_band(n, upper),
        total_sd=float(table.sum(axis=1).std(ddof=1)),
    )


def flip_probabilities(passes: Sequence[float] | FloatArray, runs: int) -> FloatArray:
    """Give each task's chance to differ between two runs: 2k(R-k)/(R(R-1)), unbiased.

    Args:
        passes: k, how many of the R runs the task passed; shape (tasks,).
        runs: R, from 2.

    Raises:
        ValueError: There are fewer than two runs.
    """
    if runs < 2:
        raise ValueError(f"a flip rate needs at least two runs, got {runs}")
    k = np.asarray(passes, dtype=np.float64)
    return 2.0 * k * (runs - k) / (runs * (runs - 1))


def upper_flip_rate(flips: int, comparisons: int, *, confidence: float = 0.95) -> float:
    """Give the one-sided exact upper limit of the flip rate; 1 - alpha^(1/n) with no flip."""
    return clopper_pearson_interval(flips, comparisons, confidence, side="upper").high


def net_band(n: int, flip_rate: float, *, probability: float = 0.95) -> int:
    """Give the net change that two runs of the same code stay within, in tasks.

    A task that flips goes up or down with equal chance.
    """
    return net_change(n, flip_rate / 2, flip_rate / 2).quantile_either_way(probability)


@dataclass(frozen=True, slots=True)
class TotalSpread:
    """The standard deviation of run totals, and its one-sided 95 % upper limit."""

    sd: float
    sd_upper: float


def spread_of_totals(totals: Sequence[float], *, confidence: float = 0.95) -> TotalSpread | None:
    """Estimate the spread of run totals; two totals bound it hardly at all.

    Returns:
        None with fewer than two totals.

    Source: one-sided chi-square limit of a normal variance, R - 1 degrees of freedom.
    """
    count = len(totals)
    if count < 2:
        return None
    variance = float(np.var(totals, ddof=1))
    quantile = float(scipy.special.chdtri(count - 1, confidence))
    return TotalSpread(sqrt(variance), sqrt((count - 1) * variance / quantile))


@dataclass(frozen=True, slots=True)
class NoiseJudgement:
    """Whether a change stands out of the noise: its band in tasks, exact p, and the verdict."""

    band: int
    p: float
    verdict: NoiseVerdict


def judge_against_noise(
    *, up: int, down: int, n: int, flip_rate_upper: float, alpha: float = 0.025
) -> NoiseJudgement:
    """Pass a gain that exceeds the band and has one-sided exact p <= alpha; both are needed."""
    band = net_band(n, flip_rate_upper)
    p = exact_paired_p(up, down)
    is_clear = up - down > band and p <= alpha
    return NoiseJudgement(band, p, "PASS" if is_clear else "NOISE")


def identical_rerun_probability(n: int, flip_rate: float) -> float:
    """Give the chance that two honest runs agree on every task: (1 - f)^n.

    It is large for a stable arm and 1 for a deterministic one, so equal scores prove no replay.
    """
    return float(np.exp(n * np.log1p(-flip_rate))) if flip_rate < 1 else float(n == 0)
