"""A rate against a bar that was registered before the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import scipy

from coldrun.tasks.stats.intervals import wilson_interval

BarRule = Literal["point", "lower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarTest:
    """A rate of k of n against a bar.

    `p_below` is P(k or fewer at the bar): small when the data exclude the bar from below;
    `p_above` the same from above. Away from 1/2 a two-sided p is not twice a tail.
    """

    rate: float
    p_below: float
    p_above: float
    is_met_by_point: bool
    is_met_by_lower: bool

    def is_met(self, rule: BarRule) -> bool:
        """Whether the bar is met under the registered rule."""
        return self.is_met_by_point if rule == "point" else self.is_met_by_lower


def compare_with_bar(count: int, n: int, bar: float) -> BarTest | None:
    """Set a rate against a bar by point, by Wilson's lower limit, and by the exact binomial test.

    Returns:
        None without a task.
    """
    if n == 0:
        return None
    return BarTest(
        rate=count / n,
        p_below=float(scipy.special.bdtr(count, n, bar)),
        p_above=float(scipy.special.bdtrc(count - 1, n, bar)) if count else 1.0,
        is_met_by_point=count / n >= bar - 1e-12,
        is_met_by_lower=wilson_interval(count, n).low >= bar - 1e-12,
    )
