"""The exact distribution of a net change over n tasks that each go up, down or stay.

It answers two questions: how far the net moves between two runs of the same code, and what an
infinite paired bootstrap of 0/1 outcomes would give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NetChange:
    """P(net = value) for every whole value from -n to n; `masses` has shape (2n + 1,)."""

    n: int
    masses: FloatArray

    def at_most(self, value: int) -> float:
        """Give P(net <= value)."""
        return float(self.masses[: max(0, value + self.n + 1)].sum())

    def at_least_either_way(self, value: int) -> float:
        """Give P(|net| >= value)."""
        return float(self._sizes()[value:].sum()) if value <= self.n else 0.0

    def quantile(self, probability: float) -> int:
        """Give the smallest value with P(net <= value) >= probability."""
        return _first_reaching(self.masses, probability) - self.n

    def quantile_either_way(self, probability: float) -> int:
        """Give the smallest band with P(|net| <= band) >= probability."""
        return _first_reaching(self._sizes(), probability)

    def _sizes(self) -> FloatArray:
        sizes = self.masses[self.n :].copy()
        sizes[1:] += self.masses[: self.n][::-1]
        return sizes


def net_change(n: int, p_up: float, p_down: float) -> NetChange:
    """Compute the distribution of ups minus downs over n independent tasks.

    Args:
        n: Tasks, at least 1.
        p_up: Probability that a task goes up by one.
        p_down: Probability that it goes down by one; p_up + p_down <= 1.
    """
    factor = np.array([p_down, max(0.0, 1.0 - p_up - p_down), p_up])
    masses: FloatArray = np.ones(1)
    power = n
    while power:  # square and multiply
        if power & 1:
            masses = np.convolve(masses, factor)
        factor = np.convolve(factor, factor)
        power >>= 1
    return NetChange(n, masses)


@dataclass(frozen=True, slots=True)
class ExactBootstrap:
    """What a paired percentile bootstrap with infinitely many resamples would print, as rates."""

    low: float
    high: float
    p_not_above_zero: float


def bootstrap_binary_difference(
    up: int, down: int, n: int, *, confidence: float = 0.95
) -> ExactBootstrap:
    """Bootstrap a difference of 0/1 outcomes exactly, as description and never as a gate.

    With k ups and no downs the lower limit clears zero from k = 4 at any usual n, although the
    exact test needs 6.

    Source: Efron & Tibshirani 1993; quantiles by inverse CDF.
    """
    distribution = net_change(n, up / n, down / n)
    tail = (1 - confidence) / 2
    return ExactBootstrap(
        low=distribution.quantile(tail) / n,
        high=distribution.quantile(1 - tail) / n,
        p_not_above_zero=distribution.at_most(0),
    )


def _first_reaching(masses: FloatArray, probability: float) -> int:
    # the tolerance keeps a sum that rounds just below the probability from moving a step
    return int(np.searchsorted(np.cumsum(masses), probability - 1e-12))
