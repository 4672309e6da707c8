"""The noise floor of an arm from repeated runs at several points, and what stands out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.stats.noise import flip_probabilities, net_band, upper_flip_rate

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledFloor:
    """How an arm's tasks flip between runs of the same code, pooled over points.

    Rates are per task and pair of runs. `flip_rate` is the unbiased estimate, `flip_rate_upper`
    its exact 95 % upper limit over independent pairs; `band_tasks` is the net change that two
    runs stay within 95 % of the time at that limit.
    """

    n: int
    runs: int
    pairs: int
    flips: int
    flip_rate: float
    flip_rate_upper: float
    band_tasks: int

    @property
    def discordant_upper(self) -> float:
        """How many tasks may differ between two runs of the same code, at the upper limit."""
        return self.n * self.flip_rate_upper

    @property
    def discordant_expected(self) -> int:
        """How many tasks differ between two runs at most 95 % of the time, as observed."""
        return int(scipy.stats.binom.ppf(0.95, self.n, self.flip_rate))


def pool_noise_floor(repeats: Sequence[FloatArray]) -> PooledFloor | None:
    """Pool the repeats of one arm at several points.

    Args:
        repeats: One table for each point, of shape (runs, tasks), over the same tasks.

    Returns:
        None when no point was run twice: no floor is known then, and reports say so.

    The first run of a point is paired with the second, the third with the fourth, and so on, so
    that no run is counted twice.
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
        weighted += own * float(flip_probabilities(table.sum(axis=0), len(table)).mean())
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


def has_unusual_flips(flips: int, floor: PooledFloor, *, alpha: float = 0.025) -> bool:
    """Whether so many tasks moved, up or down, that the floor does not explain it.

    Five up and five down have a net of 0, which no test of the net can see.
    """
    return (
        flips > 0 and float(scipy.special.bdtrc(flips - 1, floor.n, floor.flip_rate_upper)) <= alpha
    )
