"""What published numbers can and cannot be: the arithmetic behind the warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from coldrun.tasks.stats.intervals import Interval, newcombe_independent_interval


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
