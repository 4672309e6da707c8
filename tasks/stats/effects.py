"""What one configuration does that another one does not, on the same tasks: a paired effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.stats.intervals import Interval
from coldrun.tasks.stats.paired import sign_flip_p
from coldrun.tasks.stats.paired_intervals import paired_interval, without_dust

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """From one configuration to another on n tasks.

    `gained` and `regressed` count the tasks whose score went up and down; of those that stay,
    `kept` are right (a score above 0) and `residual` wrong. `difference` is the mean, after minus
    before; `p` is two-sided, and exact where every task goes up, down or stays. All three are None
    without a task.
    """

    n: int
    kept: int
    gained: int
    regressed: int
    residual: int
    difference: float | None
    interval: Interval | None
    p: float | None


def describe_effect(before: FloatArray, after: FloatArray, *, seed: int) -> Effect:
    """Describe the paired change from `before` to `after`, scores of shape (tasks,).

    Raises:
        ValueError: They are not of the same tasks.
    """
    if before.shape != after.shape:
        raise ValueError(f"paired arms need the same tasks: {before.size}, {after.size}")
    differences = without_dust(after - before)
    up, down, right = differences > 0, differences < 0, before > 0
    stays = ~up & ~down
    return Effect(
        n=before.size,
        kept=int((stays & right).sum()),
        gained=int(up.sum()),
        regressed=int(down.sum()),
        residual=int((stays & ~right).sum()),
        difference=float(differences.mean()) if before.size else None,
        interval=paired_interval(differences, seed) if before.size else None,
        p=sign_flip_p(differences, seed=seed, alternative="two-sided") if before.size else None,
    )


def split_effect(
    before: FloatArray, after: FloatArray, is_used: Sequence[bool], *, seed: int
) -> tuple[Effect, Effect]:
    """Describe the effect on the tasks in which a component was used, and on the others."""
    used = np.asarray(is_used, dtype=bool)
    return (
        describe_effect(before[used], after[used], seed=seed),
        describe_effect(before[~used], after[~used], seed=seed),
    )
