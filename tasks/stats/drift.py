"""Whether the control arms moved although nothing about them changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.stats.paired import exact_paired_two_sided_p, sign_flip_p

FloatArray = NDArray[np.float64]
DriftVerdict = Literal["NO_DRIFT", "DRIFT"]

DRIFT_ALPHA = 0.05
"""Below this, either alarm invalidates the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A control or floor arm between two sessions. DRIFT: it moved although it should not.

    `flips_p` is P(as many flips or more) at the noise floor; `net_p` the two-sided exact paired p.
    Five up and five down have net 0 and net_p 1, so the flips are tested as well.
    """

    arm: str
    up: int
    down: int
    flips_p: float
    net_p: float
    verdict: DriftVerdict


def judge_drift(arm: str, *, up: int, down: int, n: int, flip_rate: float) -> Drift:
    """Judge a control that was run in both sessions.

    Args:
        arm: Its name.
        up: Tasks that it gained.
        down: Tasks that it lost.
        n: Tasks in both sessions.
        flip_rate: The noise floor of that arm, per task; 0 when it is deterministic.
    """
    flips = up + down
    flips_p = 1.0 if flips == 0 else float(scipy.special.bdtrc(flips - 1, n, flip_rate))
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


@dataclass(frozen=True, slots=True)
class DifferenceInDifferences:
    """The tool's change less the control's, per task and in sum, with a two-sided p."""

    per_task: tuple[float, ...]
    total: float
    p: float


def difference_in_differences(
    *,
    tool_before: Sequence[float] | FloatArray,
    tool_after: Sequence[float] | FloatArray,
    control_before: Sequence[float] | FloatArray,
    control_after: Sequence[float] | FloatArray,
    seed: int,
) -> DifferenceInDifferences:
    """Take out of the tool's change what the control did on the same tasks.

    Args:
        seed: Of the sign flips; unused up to 13 changed tasks.
    """
    before = np.asarray(tool_before, dtype=np.float64) - np.asarray(control_before, float)
    after = np.asarray(tool_after, dtype=np.float64) - np.asarray(control_after, float)
    change = after - before
    return DifferenceInDifferences(
        per_task=tuple(float(value) for value in change),
        total=float(change.sum()),
        p=sign_flip_p(change, seed=seed, alternative="two-sided"),
    )
