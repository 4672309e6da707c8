"""The one gate: a candidate against every null, paired by task, by exact and permutation tests.

"Better than every null" is an intersection-union test, so each null is tested at the full level
and nothing is corrected (Berger 1982). Mid-p, bootstrap and intervals are printed beside the gate
and never switched to. The commonest answer is taken from the very tasks that are scored, which
favours the null: the gate errs towards saying less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.plain_text import noun
from coldrun.tasks.stats.measures import Measure
from coldrun.tasks.stats.paired import exact_paired_p, sign_flip_p

FloatArray = NDArray[np.float64]
Outcome = Literal["measured_nothing", "inconclusive", "beats_nulls"]

GATE_ALPHA = 0.025
"""One-sided level of the gate against each null; the upper half of a two-sided 0.05."""

_TOLERANCE = 1e-9
"""Differences of scores, and of sums of them, below this are rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """An arm against another on the same tasks.

    `difference` is the mean of this arm's scores minus the other's, in [-1, 1]; `net_tasks` the
    sum. `up` and `down` count the tasks that are better and worse, None when the other arm is an
    expectation. `p` is one-sided for "better": exact where all differences have one size.
    `total` and `other_total` are the sums of scores, e.g. 13 against 19 of `tasks`.
    """

    other: str
    tasks: int
    up: int | None
    down: int | None
    p: float
    difference: float
    net_tasks: float
    total: float
    other_total: float

    @property
    def is_beaten(self) -> bool:
        """Whether this arm scores less than the other, by however little."""
        return self.net_tasks < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a candidate's answers show.

    `against` has one pairing per null, in the order given; `compared` one per control and floor.
    `p` is that of the intersection-union test: the largest over the nulls. `beaten_by` names the
    controls and floors that score more.
    """

    outcome: Outcome
    reason: str
    p: float
    against: tuple[Pairing, ...]
    compared: tuple[Pairing, ...]
    beaten_by: tuple[str, ...]


def pair_scores(
    scores: FloatArray, others: FloatArray, *, other: str, is_expectation: bool, seed: int
) -> Pairing:
    """Pair two score vectors of the same tasks.

    Args:
        scores: Shape (tasks,), trials averaged, missing tasks scored 0.
        others: Shape (tasks,), of the arm compared with, in the same order of tasks.
        other: Its name.
        is_expectation: Whether it scores fractions by expectation, so that ups mean nothing.
        seed: Of the sign flips, where they are not exact.

    Raises:
        ValueError: The vectors differ in length, are empty or not finite.
    """
    if len(scores) != len(others) or len(scores) == 0:
        raise ValueError(
            f"paired scores must cover the same tasks, at least one: got {len(scores)}, "
            f"and {len(others)} of {other}"
        )
    differences = np.asarray(scores, dtype=np.float64) - others
    differences[np.abs(differences) < _TOLERANCE] = 0.0
    net = float(differences.sum())
    net = 0.0 if abs(net) < _TOLERANCE else net
    return Pairing(
        other=other,
        tasks=len(differences),
        up=None if is_expectation else int(np.count_nonzero(differences > 0)),
        down=None if is_expectation else int(np.count_nonzero(differences < 0)),
        p=sign_flip_p(differences, seed=seed),
        difference=net / len(differences),
        net_tasks=net,
        total=float(np.sum(scores)),
        other_total=float(np.sum(others)),
    )


def judge_gate(
    pairings: Sequence[Pairing], *, tasks: int, margin_tasks: float
) -> tuple[Outcome, str]:
    """Judge a candidate by its pairings with every null.

    Args:
        pairings: One per null.
        tasks: Tasks of the panel.
        margin_tasks: How many tasks better than each null counts as better; registered before.

    Returns:
        `measured_nothing` when it is not better than some null; `inconclusive` when it is better
        than all, but by less than the margin or with p > 0.025 against some; else `beats_nulls`.
        With the reason, naming the null that decides.

    Raises:
        ValueError: There is no null to compare with.
    """
    if not pairings:
        raise ValueError("a gate needs at least one null to compare with, got none")
    worst = min(pairings, key=lambda pairing: pairing.difference)
    net = worst.difference * tasks
    if worst.difference <= 0:
        return "measured_nothing", f"not better than {worst.other} ({_format_tasks(net)})"
    if net < margin_tasks - _TOLERANCE:
        return "inconclusive", (
            f"better than {worst.other} by {_format_tasks(net)}, less than the registered "
            f"margin of {margin_tasks:g}"
        )
    unsure = max(pairings, key=lambda pairing: pairing.p)
    if unsure.p > GATE_ALPHA:
        return "inconclusive", (
            f"better than {unsure.other} by {_format_tasks(unsure.difference * tasks)}, but "
            f"p = {unsure.p:.3f} > {GATE_ALPHA}"
        )
    return "beats_nulls", f"better than every null, p ≤ {unsure.p:.2g}"


def judge_candidate(
    scores: FloatArray,
    *,
    measure: Measure,
    nulls: Mapping[str, FloatArray],
    rivals: Mapping[str, FloatArray],
    margin_tasks: float,
    seed: int,
    expectations: Sequence[str] = ("random", "permuted"),
) -> Judgement:
    """Pair a candidate with every null, control and floor, and judge it.

    Args:
        scores: The candidate's, shape (tasks,).
        measure: What was scored; recall never gates.
        nulls: Score vectors of the nulls by name, in the order of the report.
        rivals: Score vectors of the controls and floors by name.
        margin_tasks: The registered margin.
        seed: Derived from the panel hash.
        expectations: Nulls that score by expectation.

    Raises:
        ConfigError: The measure cannot gate.
        ValueError: There is no null, or the vectors differ in length.
    """
    require_gating(measure)
    against = tuple(
        pair_scores(scores, vector, other=name, is_expectation=name in expectations, seed=seed)
        for name, vector in nulls.items()
    )
    compared = tuple(
        pair_scores(scores, vector, other=name, is_expectation=False, seed=seed)
        for name, vector in rivals.items()
    )
    outcome, reason = judge_gate(against, tasks=len(scores), margin_tasks=margin_tasks)
    return Judgement(
        outcome=outcome,
        reason=reason,
        p=max(pairing.p for pairing in against),
        against=against,
        compared=compared,
        beaten_by=tuple(pairing.other for pairing in compared if pairing.is_beaten),
    )


def require_gating(measure: Measure) -> None:
    """Refuse a measure on which no verdict can rest.

    Raises:
        ConfigError: The measure is recall, in which always-everything cannot be beaten.
    """
    if not measure.can_gate:
        raise ConfigError(
            f"{measure.text} cannot be the primary measure: always-everything has recall 1, so "
            "nothing can beat it; gate on f1, exact or hit@k and list recall under `also`"
        )


def p_by_overlap(n: int, *, hits: int, other_hits: int) -> dict[tuple[int, int], float]:
    """Give the exact one-sided p for every overlap that two totals on n tasks allow.

    When only totals were published, the discordant counts are unknown; this bounds what a paired
    test could have said.

    Returns:
        p by (up, down), the largest overlap (fewest discordant pairs) last.
    """
    least = max(0, hits + other_hits - n)
    return {
        (hits - both, other_hits - both): exact_paired_p(hits - both, other_hits - both)
        for both in range(least, min(hits, other_hits) + 1)
    }


def _format_tasks(number: float) -> str:
    text = f"{number:+.1f}".removesuffix(".0")
    return f"{text} {noun(float(text), 'task')}"
