"""One arm against another, paired by task, and the gate of a candidate against every null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.analyse.evidence import Outcome
from tasks.analyse.paired import sign_flip_p

FloatArray = NDArray[np.float64]

GATE_ALPHA = 0.025
"""One-sided level of the gate against each null."""

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """An arm against another on the same tasks.

    `difference` is the mean of this arm's scores minus the other's, in [-1, 1]. `up` and `down`
    count the tasks that are better and worse, None when the other arm is an expectation. `p` is
    one-sided for "better", exact where all differences have one size.
    """

    other: str
    up: int | None
    down: int | None
    p: float
    difference: float


def pair_scores(
    scores: FloatArray, others: FloatArray, *, other: str, is_expectation: bool, seed: int
) -> Pairing:
    """Pair two score vectors of the same tasks: each of shape (tasks,), at least one task."""
    differences = scores - others
    differences[np.abs(differences) < _TOLERANCE] = 0.0
    return Pairing(
        other=other,
        up=None if is_expectation else int(np.count_nonzero(differences > 0)),
        down=None if is_expectation else int(np.count_nonzero(differences < 0)),
        p=sign_flip_p(differences, seed=seed),
        difference=float(differences.mean()),
    )


def judge_gate(
    pairings: Sequence[Pairing], *, tasks: int, margin_tasks: float
) -> tuple[Outcome, str]:
    """Judge a candidate by its pairings with every null.

    Returns:
        `measured_nothing` when it is not better than some null; `inconclusive` when it is better
        than all, but by less than the margin or with p > 0.025 against some; else `beats_nulls`.
        With the reason, naming the null that decides.

    Raises:
        ValueError: There is no null to compare with.
    """
    if not pairings:
        raise ValueError("a gate needs at least one null")
    worst = min(pairings, key=lambda pairing: pairing.difference)
    if worst.difference <= 0:
        return "measured_nothing", (
            f"not better than {worst.other} ({_tasks(worst.difference * tasks)} tasks)"
        )
    if worst.difference * tasks < margin_tasks - _TOLERANCE:
        return "inconclusive", (
            f"better than {worst.other} by {_tasks(worst.difference * tasks)} tasks, less than the "
            f"registered margin of {margin_tasks:g}"
        )
    unsure = max(pairings, key=lambda pairing: pairing.p)
    if unsure.p > GATE_ALPHA:
        return "inconclusive", (
            f"better than {unsure.other} by {_tasks(unsure.difference * tasks)} tasks, but "
            f"p = {unsure.p:.3f} > {GATE_ALPHA}"
        )
    return "beats_nulls", f"better than every null, p ≤ {unsure.p:.2g}"


def _tasks(number: float) -> str:
    return f"{number:+.1f}".removesuffix(".0")
