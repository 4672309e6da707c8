"""The one gate: a candidate against every null, paired by task, by exact and permutation tests.

Nulls that score by expectation have tests of their own: `random` the Poisson binomial of its
chances, `permuted` permutations of whole assignments of answers to tasks.

"Better than every null" is an intersection-union test, so each null is tested at the full level
and nothing is corrected (Berger 1982). The commonest answer is taken from the very tasks that are
scored, which favours the null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from coldrun.tasks.config import BarConfig
from coldrun.tasks.judge.evidence import Outcome
from coldrun.tasks.judge.report_model import AgainstPart, BarPart, GatePart, MeasurePart
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.plain_text import noun
from coldrun.tasks.lib.records import Role
from coldrun.tasks.stats.intervals import (
    Interval,
    mean_interval,
    mean_intervals,
    paired_intervals,
    wilson_interval,
)
from coldrun.tasks.stats.measures import Measure, parse_measure
from coldrun.tasks.stats.paired import (
    GATE_ALPHA,
    adjust_holm,
    minimum_detectable_effect,
    sign_flip_p,
)

EXPECTATIONS = ("random", "permuted")
"""Nulls that score by expectation: fractions of a task, so no ups and downs."""

_TOLERANCE = 1e-9
"""Differences of scores, and of sums of them, below this are rounding."""


def summarise(
    scores: Sequence[FloatArray], measures: Sequence[Measure], seed: int
) -> list[MeasurePart]:
    """The mean of each score vector with its interval.

    Wilson where every task scores 0 or 1, else BCa bootstrap, for which all vectors share the draws
    of tasks.
    """
    is_counted = [
        measure.definition.is_binary and bool(np.isin(vector, (0.0, 1.0)).all())
        for vector, measure in zip(scores, measures, strict=True)
    ]
    graded = [vector for vector, counted in zip(scores, is_counted, strict=True) if not counted]
    bootstrapped = iter(mean_intervals(np.column_stack(graded), seed) if graded else ())
    parts = []
    for vector, counted in zip(scores, is_counted, strict=True):
        count = int(vector.sum()) if counted else None
        interval = next(bootstrapped) if count is None else wilson_interval(count, len(vector))
        value = float(vector.mean())
        parts.append(MeasurePart(value=value, count=count, low=interval.low, high=interval.high))
    return parts


def pair_scores(
    scores: FloatArray,
    others: Mapping[str, tuple[Role, FloatArray]],
    *,
    seed: int,
    exact_p: Mapping[str, float] = MappingProxyType({}),
) -> list[AgainstPart]:
    """Pair a score vector with others of the same tasks, missing tasks scored 0.

    `exact_p` has the p of nulls that have a distribution of their own, by the kind of null.
    """
    for name, (_, vector) in others.items():
        if len(scores) != len(vector) or len(scores) == 0:
            raise ValueError(
                f"paired scores must cover the same tasks, at least one: got {len(scores)}, "
                f"and {len(vector)} of {name}"
            )
    differences = [scores - vector for _, vector in others.values()]
    intervals = paired_intervals(differences, seed)
    return [
        _describe_pair(
            name, role, vector, difference, interval, exact_p.get(name.partition(":")[0]), seed
        )
        for (name, (role, vector)), difference, interval in zip(
            others.items(), differences, intervals, strict=True
        )
    ]


def _describe_pair(
    name: str,
    role: Role,
    others: FloatArray,
    differences: FloatArray,
    interval: Interval,
    exact_p: float | None,
    seed: int,
) -> AgainstPart:
    differences = np.where(np.abs(differences) < _TOLERANCE, 0.0, differences)
    net = float(differences.sum())
    net = 0.0 if abs(net) < _TOLERANCE else net
    is_expectation = role == "null" and name.partition(":")[0] in EXPECTATIONS
    return AgainstPart(
        arm=name,
        up=None if is_expectation else int(np.count_nonzero(differences > 0)),
        down=None if is_expectation else int(np.count_nonzero(differences < 0)),
        p=sign_flip_p(differences, seed=seed) if exact_p is None else exact_p,
        difference=net / len(differences),
        role=role,
        value=float(np.sum(others)) / len(others),
        low=interval.low,
        high=interval.high,
    )


def judge_gate(
    against: Sequence[AgainstPart], *, tasks: int, margin_tasks: float
) -> tuple[Outcome, str]:
    """Judge a candidate by its pairings with every null; gives the reason too.

    `measured_nothing` when it is not better than some null; `inconclusive` when it is better than
    all, but by less than the margin or with p > 0.025 against some; else `beats_nulls`.
    """
    if not against:
        raise ValueError("a gate needs at least one null to compare with, got none")
    worst = min(against, key=lambda part: part.difference)
    net = worst.difference * tasks
    if worst.difference <= 0:
        return "measured_nothing", f"not better than {worst.arm} ({_format_tasks(net)})"
    if net < margin_tasks - _TOLERANCE:
        return "inconclusive", (
            f"better than {worst.arm} by {_format_tasks(net)}, less than the registered "
            f"margin of {margin_tasks:g}"
        )
    unsure = max(against, key=lambda part: part.p)
    if unsure.p > GATE_ALPHA:
        return "inconclusive", (
            f"better than {unsure.arm} by {_format_tasks(unsure.difference * tasks)}, but "
            f"p = {unsure.p:.3f} > {GATE_ALPHA}"
        )
    return "beats_nulls", f"better than every null, p ≤ {unsure.p:.2g}"


def judge_candidate(  # noqa: PLR0913  the parts of one gate
    arm: str,
    scores: FloatArray,
    *,
    measure: str,
    nulls: Mapping[str, FloatArray],
    rivals: Mapping[str, tuple[Role, FloatArray]],
    margin_tasks: float,
    seed: int,
    exact_p: Mapping[str, float] = MappingProxyType({}),
) -> GatePart:
    """Pair a candidate with every null, control and floor, and judge it.

    A null that another candidate's answers made (`permuted:NAME`) is left out.
    """
    own: dict[str, tuple[Role, FloatArray]] = {
        name: ("null", vector)
        for name, vector in nulls.items()
        if name.partition(":")[2] in ("", arm)
    }
    pairs = pair_scores(scores, {**own, **rivals}, seed=seed, exact_p=exact_p)
    against, compared = pairs[: len(own)], pairs[len(own) :]
    outcome, reason = judge_gate(against, tasks=len(scores), margin_tasks=margin_tasks)
    return GatePart(
        arm=arm,
        measure=measure,
        outcome=outcome,
        reason=reason,
        margin_tasks=margin_tasks,
        mde_tasks=minimum_detectable_effect(len(scores)),
        against=against,
        beaten_by=[part.arm for part in compared if part.difference < 0],
        compared=compared,
    )


def adjust_gates(gates: Sequence[GatePart]) -> tuple[GatePart, ...]:
    """Add Holm over every comparison that the report prints; the gate itself is not corrected."""
    printed = [part for gate in gates for part in [*gate.against, *gate.compared]]
    adjusted = iter(adjust_holm([part.p for part in printed]))

    def adjust(parts: Sequence[AgainstPart]) -> list[AgainstPart]:
        return [part.model_copy(update={"holm_p": next(adjusted)}) for part in parts]

    return tuple(
        gate.model_copy(update={"against": adjust(gate.against), "compared": adjust(gate.compared)})
        for gate in gates
    )


def judge_bar(
    bar: BarConfig, scores: FloatArray, known: Mapping[str, FloatArray], *, seed: int
) -> BarPart:
    """Set an arm against a registered bar, by its score or by the interval's lower end."""
    if bar.against is None:
        at_least = bar.at_least or 0.0
        (part,) = summarise([scores], [parse_measure(bar.measure)], seed)
        value = part.value if bar.rule == "point" else part.low
    else:
        own = f"{bar.against}:{bar.arm}"  # of several candidates, each has a permuted null
        differences = scores - known[own if own in known else bar.against]
        at_least = bar.margin_tasks / len(scores)
        is_point = bar.rule == "point"
        value = float(differences.mean()) if is_point else mean_interval(differences, seed).low
    return BarPart(
        arm=bar.arm,
        measure=bar.measure,
        at_least=at_least,
        value=value,
        met=bool(value >= at_least - 1e-12),
        rule=bar.rule,
        against=bar.against,
    )


def _format_tasks(number: float) -> str:
    text = f"{number:+.1f}".removesuffix(".0")
    return f"{text} {noun(float(text), 'task')}"
