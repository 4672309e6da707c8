"""Several comparisons in one report: adjusted p-values over a named family.

The family is every comparison printed in one report. Few claims: Holm. Screening many arms:
Benjamini–Hochberg. Correlated arms on one panel: max-T. "Beats every null" is an
intersection-union test and is not corrected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.stats.flips import EXHAUSTIVE_TASKS, draw_flips, sum_flipped

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Family:
    """Adjusted p-values of the comparisons printed together, in the order they were given."""

    name: str
    method: str
    raw: Mapping[str, float]
    adjusted: Mapping[str, float]


def adjust_family(name: str, raw: Mapping[str, float]) -> Family:
    """Adjust the p-values of one report by Holm, and keep what they belong to.

    Args:
        name: What the family is, for the report, e.g. "every candidate against every control".
        raw: p by comparison.
    """
    adjusted = dict(zip(raw, adjust_holm(list(raw.values())), strict=True))
    return Family(name=name, method="Holm", raw=dict(raw), adjusted=adjusted)


def adjust_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values so that any false rejection at all stays below alpha.

    Returns:
        Adjusted p in the order given, at most 1, monotone in the raw p.

    Raises:
        ValueError: A p-value is outside [0, 1] or not a number.

    Source: Holm 1979. Not Holm–Šidák, the default of statsmodels.
    """
    p = _check(p_values)
    order = np.argsort(p, kind="stable")
    steps = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return tuple(float(value) for value in adjusted)


def adjust_benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values so that the expected share of false rejections stays below alpha.

    Raises:
        ValueError: A p-value is outside [0, 1] or not a number.

    Source: Benjamini & Hochberg 1995, for independent or positively dependent comparisons.
    """
    return _control_discoveries(p_values, "bh")


def adjust_benjamini_yekutieli(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust as Benjamini–Hochberg, under any dependence.

    Raises:
        ValueError: A p-value is outside [0, 1] or not a number.

    Source: Benjamini & Yekutieli 2001.
    """
    return _control_discoveries(p_values, "by")


def intersection_union_p(p_values: Mapping[str, float]) -> float:
    """Give the p of "better than all of them": the largest, each tested at the full level.

    Raises:
        ValueError: There is none.

    Source: Berger 1982.
    """
    if not p_values:
        raise ValueError("an intersection-union test needs at least one comparison")
    return max(p_values.values())


def max_t_p(
    differences: Sequence[Sequence[float]] | FloatArray, *, seed: int, resamples: int = 9999
) -> tuple[float, ...]:
    """Give two-sided sign-flip p-values adjusted for all arms together.

    A task changes sign in all arms at once, which keeps the arms' correlation. The statistic is
    the absolute sum of differences; each arm's is set against the largest of all arms.

    Args:
        differences: Shape (arms, tasks), each arm minus the common baseline.
        seed: Of the random signs; unused up to 13 tasks, where all are tried.

    Source: Westfall & Young 1993, single step; Boytsov, Belova & Westfall 2013 (SIGIR).
    """
    table = np.asarray(differences, dtype=np.float64)
    tasks = table.shape[1]
    flips = draw_flips(tasks, seed=seed, resamples=resamples)
    largest = np.zeros(flips.shape[1])
    for row in table:
        np.maximum(largest, np.abs(sum_flipped(row, flips)), out=largest)
    tolerance = 1e-9 * float(np.abs(table).sum(axis=1).max())
    observed = np.abs(table.sum(axis=1))
    extra = 0 if tasks <= EXHAUSTIVE_TASKS else 1
    return tuple(
        (extra + int(np.count_nonzero(largest >= value - tolerance))) / (extra + flips.shape[1])
        for value in observed
    )


def spend_alpha(look: int, *, alpha: float = 0.05) -> float:
    """Give the level of the `look`-th look (from 1) at one fixed baseline: alpha/(t(t+1)).

    All looks together, however many, spend at most `alpha`.
    """
    return alpha / (look * (look + 1))


def _control_discoveries(p_values: Sequence[float], method: str) -> tuple[float, ...]:
    p = _check(p_values)
    if p.size == 0:
        return ()
    if method == "bh":
        return tuple(float(value) for value in scipy.stats.false_discovery_control(p, method="bh"))
    return tuple(float(value) for value in scipy.stats.false_discovery_control(p, method="by"))


def _check(p_values: Sequence[float]) -> FloatArray:
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(
            f"p-values must lie in [0, 1], got {list(p_values)}; leave undefined comparisons out "
            "and count them"
        )
    return p
