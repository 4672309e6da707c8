"""How far a score moves when nothing changed: noise floors from repeated runs, and drift.

Tasks are taken to flip independently, which a shock to a whole run breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.stats.paired import GATE_ALPHA, exact_paired_two_sided_p

DRIFT_ALPHA = 0.05
"""Below this, either alarm of a control invalidates the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledFloor:
    """How an arm's tasks flip between runs of the same code, pooled over points.

    Rates are per task and pair of runs. `flip_rate` is the unbiased estimate, `flip_rate_upper`
    its exact 95 % upper limit over independent pairs; `band_tasks` is the net change that two runs
    stay within 95 % of the time at that limit.
    """

    n: int
    runs: int
    pairs: int
    flips: int
    flip_rate: float
    flip_rate_upper: float
    band_tasks: int

    @property
    def discordant_expected(self) -> int:
        """How many tasks differ between two runs at most 95 % of the time, as observed."""
        return int(scipy.stats.binom.ppf(0.95, self.n, self.flip_rate))


def pool_noise_floor(repeats: Sequence[FloatArray]) -> PooledFloor | None:
    """Estimate the floor of one arm from its repeats at one or several points.

    One table of outcomes for each point, shape (runs, tasks); None when no point was run twice. The
    first run of a point is paired with the second, the third with the fourth, and so on, so that no
    run is counted twice.
    """
    tables = [table for table in repeats if len(table) >= 2 and table.shape[1] > 0]
    if not tables:
        return None
    n = tables[0].shape[1]
    pairs = flips = 0
    weighted = 0.0
    for table in tables:
        own = len(table) // 2
        pairs += own
        flips += int(np.count_nonzero(table[0 : 2 * own : 2] != table[1 : 2 * own : 2]))
        weighted += own * float(flip_probabilities(table).mean())
    upper = upper_flip_rate(flips, n * pairs)
    return PooledFloor(
        n=n,
        runs=sum(len(table) for table in tables),
        pairs=pairs,
        flips=flips,
        flip_rate=weighted / pairs,
        flip_rate_upper=upper,
        band_tasks=net_band(n, upper),
    )


def flip_probabilities(outcomes: FloatArray) -> FloatArray:
    """Give each task's chance to differ between two of R runs: 2k(R-k)/(R(R-1)), unbiased."""
    runs = len(outcomes)
    k = outcomes.sum(axis=0)
    return np.asarray(2.0 * k * (runs - k) / (runs * (runs - 1)), dtype=np.float64)


def upper_flip_rate(flips: int, comparisons: int, *, confidence: float = 0.95) -> float:
    """Give the one-sided exact upper limit of a rate; 1 - alpha^(1/n) with no flip.

    Source: Clopper & Pearson 1934.
    """
    if not 0 <= flips <= comparisons:
        raise ValueError(f"flips must lie between 0 and {comparisons}, got {flips}")
    if flips == comparisons:
        return 1.0
    return float(scipy.special.betainccinv(flips + 1, comparisons - flips, 1 - confidence))


def net_band(n: int, flip_rate: float) -> int:
    """Give the net change, in tasks, that two runs of the same code stay within 95 % of the time.

    A task that flips goes up or down with equal chance.
    """
    masses = net_change(n, flip_rate / 2, flip_rate / 2)
    sizes = masses[n:].copy()
    sizes[1:] += masses[:n][::-1]
    # the tolerance keeps a sum that rounds just below 0.95 from moving a step
    return int(np.searchsorted(np.cumsum(sizes), 0.95 - 1e-12))


def net_change(n: int, p_up: float, p_down: float) -> FloatArray:
    """Compute P(ups - downs = value) over n independent tasks, for every value from -n to n."""
    factor = np.array([p_down, max(0.0, 1.0 - p_up - p_down), p_up])
    masses: FloatArray = np.ones(1)
    power = n
    while power:  # square and multiply
        if power & 1:
            masses = np.convolve(masses, factor)
        factor = np.convolve(factor, factor)
        power >>= 1
    return masses


def unusual_flips_p(flips: int, n: int, flip_rate: float) -> float:
    """Give P(that many of n tasks flip, or more).

    Five up and five down have a net of 0, which no test of the net can see.
    """
    return 1.0 if flips == 0 else float(scipy.special.bdtrc(flips - 1, n, flip_rate))


def has_unusual_flips(flips: int, floor: PooledFloor) -> bool:
    """Whether more tasks moved, up or down, than the floor explains."""
    return unusual_flips_p(flips, floor.n, floor.flip_rate_upper) <= GATE_ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A control or floor arm between two sessions. DRIFT: it moved although it should not.

    `flips_p` is P(as many flips or more) at the noise floor; `net_p` the two-sided exact paired p.
    """

    arm: str
    up: int
    down: int
    flips_p: float
    net_p: float
    verdict: Literal["DRIFT", "NO_DRIFT"]


def judge_drift(arm: str, *, up: int, down: int, n: int, flip_rate: float) -> Drift:
    """Judge a control that was run in both sessions."""
    flips_p = unusual_flips_p(up + down, n, flip_rate)
    net_p = exact_paired_two_sided_p(up, down)
    is_drift = min(flips_p, net_p) <= DRIFT_ALPHA
    return Drift(
        arm=arm,
        up=up,
        down=down,
        flips_p=flips_p,
        net_p=net_p,
        verdict="DRIFT" if is_drift else "NO_DRIFT",
    )
