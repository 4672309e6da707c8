"""What changed between two points: kept, gained, regressed and residual tasks, and steps.

Rates stand on their own bases: gains on the failures before, regressions on the passes before.
Sums of step nets equal the net of the ends; sums of step gains exceed the gains of the ends by
tasks that were won and lost again (churn).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.stats.intervals import clopper_pearson_interval

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """Counts of tasks between two points on the same n tasks."""

    n: int
    before: int
    gains: int
    regressions: int

    @property
    def kept(self) -> int:
        """Right before and after."""
        return self.before - self.regressions

    @property
    def residual(self) -> int:
        """Wrong before and after."""
        return self.n - self.before - self.gains

    @property
    def net(self) -> int:
        """Gains less regressions."""
        return self.gains - self.regressions

    @property
    def after(self) -> int:
        """Right after."""
        return self.before + self.net

    @property
    def gain_rate(self) -> float | None:
        """Gains per failure before, None when nothing failed."""
        failures = self.n - self.before
        return self.gains / failures if failures else None

    @property
    def regression_rate(self) -> float | None:
        """Regressions per pass before, None when nothing passed."""
        return self.regressions / self.before if self.before else None

    @property
    def regression_rate_upper(self) -> float | None:
        """One-sided 95 % upper limit of the regression rate: 0 of 19 still allows 14.6 %."""
        if not self.before:
            return None
        return clopper_pearson_interval(self.regressions, self.before, side="upper").high


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTransition:
    """A transition with the tasks that moved, ids sorted; `left_out` are in one point only."""

    counts: Transition
    gained: tuple[str, ...]
    regressed: tuple[str, ...]
    left_out: tuple[str, ...]


def count_transition(*, before: int, up: int, down: int, n: int) -> Transition:
    """Build a transition from counts.

    Raises:
        ValueError: More regressions than passes, or more gains than failures.
    """
    if not 0 <= down <= before or not 0 <= up <= n - before:
        raise ValueError(f"{up} up and {down} down of {before} right in {n} are impossible")
    return Transition(n=n, before=before, gains=up, regressions=down)


def compare_outcomes(before: Mapping[str, float], after: Mapping[str, float]) -> TaskTransition:
    """Compare two points task by task, on the tasks that both have.

    Args:
        before: Binary outcome by task id.
        after: The same at the later point.
    """
    common = sorted(before.keys() & after.keys())
    gained = tuple(task for task in common if after[task] > before[task])
    regressed = tuple(task for task in common if after[task] < before[task])
    return TaskTransition(
        counts=Transition(
            n=len(common),
            before=sum(before[task] > 0 for task in common),
            gains=len(gained),
            regressions=len(regressed),
        ),
        gained=gained,
        regressed=regressed,
        left_out=tuple(sorted(before.keys() ^ after.keys())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAttribution:
    """Steps between successive points on the same tasks.

    `churn` is how many step gains and step regressions exceed those between the ends, together;
    `flapping` are the places of the tasks that changed more than once.
    """

    totals: tuple[int, ...]
    gains: tuple[int, ...]
    regressions: tuple[int, ...]
    endpoint_gains: int
    endpoint_regressions: int
    churn: int
    flapping: tuple[int, ...]

    @property
    def nets(self) -> tuple[int, ...]:
        """Gains less regressions of every step; their sum is the net of the ends."""
        return tuple(gain - loss for gain, loss in zip(self.gains, self.regressions, strict=True))


def attribute_steps(states: Sequence[Sequence[float]] | FloatArray) -> StepAttribution:
    """Attribute the change between the first and the last point to its steps.

    Args:
        states: Shape (points, tasks), 0 or 1, oldest first, on tasks present in every point.
    """
    table = np.asarray(states, dtype=np.int64)
    changes = np.diff(table, axis=0)
    gains = (changes > 0).sum(axis=1)
    regressions = (changes < 0).sum(axis=1)
    ends = table[-1] - table[0]
    end_gains, end_losses = int((ends > 0).sum()), int((ends < 0).sum())
    moves = (changes != 0).sum(axis=0)
    return StepAttribution(
        totals=tuple(int(total) for total in table.sum(axis=1)),
        gains=tuple(int(count) for count in gains),
        regressions=tuple(int(count) for count in regressions),
        endpoint_gains=end_gains,
        endpoint_regressions=end_losses,
        churn=int(gains.sum() - end_gains + regressions.sum() - end_losses),
        flapping=tuple(int(task) for task in np.flatnonzero(moves > 1)),
    )


def difference_totals(totals: Sequence[int]) -> tuple[int, ...]:
    """Give the net of every step from totals alone."""
    return tuple(after - before for before, after in pairwise(totals))


def collapse_equal(trees: Sequence[Hashable]) -> tuple[tuple[int, ...], ...]:
    """Group neighbouring points whose product tree is the same: one of them stands for all."""
    groups: list[list[int]] = []
    for place, tree in enumerate(trees):
        if groups and trees[groups[-1][-1]] == tree:
            groups[-1].append(place)
        else:
            groups.append([place])
    return tuple(tuple(group) for group in groups)
