"""Whether the tasks of a panel tell arms apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.stats.paired import count_discordant, exact_paired_two_sided_p

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelDiscrimination:
    """What arms reveal about tasks.

    `rest_correlations` gives, per task, the correlation over arms of its outcome with the arm's
    score on all other tasks, None where either is constant. `max_discordant` is the largest
    number of tasks on which two arms differ: below 6 no pair can reach a two-sided 0.05.
    `discriminative_power` is the share of pairs of arms that do, None with one arm.
    """

    all_pass: int
    all_fail: int
    discriminating: int
    fraction: float
    rest_correlations: tuple[float | None, ...]
    max_discordant: int
    discriminative_power: float | None


def describe_panel(
    outcomes: Sequence[Sequence[float]] | FloatArray, *, alpha: float = 0.05
) -> PanelDiscrimination:
    """Describe how the outcomes of several arms split the tasks.

    Args:
        outcomes: Shape (arms, tasks), 0 or 1; at least one of each.
        alpha: Two-sided level of the exact paired test.

    Raises:
        ValueError: There is no arm or no task.

    Source: classical item analysis (corrected item-total correlation); Sakai 2006 (SIGIR) for
    discriminative power.
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError("describing a panel needs outcomes of at least one arm on one task")
    passes = table.sum(axis=0)
    all_pass = int(np.count_nonzero(passes == len(table)))
    all_fail = int(np.count_nonzero(passes == 0))
    split = table.shape[1] - all_pass - all_fail
    discordant = [count_discordant(*pair) for pair in combinations(table, 2)]
    significant = [exact_paired_two_sided_p(up, down) <= alpha for up, down in discordant]
    rest = table.sum(axis=1, keepdims=True) - table
    return PanelDiscrimination(
        all_pass=all_pass,
        all_fail=all_fail,
        discriminating=split,
        fraction=split / table.shape[1],
        rest_correlations=tuple(
            _correlate(table[:, task], rest[:, task]) for task in range(table.shape[1])
        ),
        max_discordant=max((up + down for up, down in discordant), default=0),
        discriminative_power=sum(significant) / len(significant) if significant else None,
    )


def _correlate(first: FloatArray, second: FloatArray) -> float | None:
    one, two = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((one**2).sum() * (two**2).sum()))
    return float((one * two).sum()) / scale if scale > 1e-12 else None
