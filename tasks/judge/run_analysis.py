"""The analysis of one run: nulls, aggregates, gates, bars, verdict. Pure.

Everything is paired on the panel's tasks; every number keeps its denominator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.config import BarConfig
from coldrun.tasks.judge.evidence import (
    Evidence,
    EvidenceFacts,
    Outcome,
    Verdict,
    exit_code,
    judge_evidence,
    judge_verdict,
)
from coldrun.tasks.judge.gate_model import AgainstPart, BarPart, GatePart, MeasurePart
from coldrun.tasks.judge.repeats import Repeats, describe_repeats
from coldrun.tasks.judge.score_table import ArmAnswers, score_arms, score_vector
from coldrun.tasks.lib.records import Role, Task
from coldrun.tasks.stats.gate import Pairing, judge_candidate
from coldrun.tasks.stats.intervals import mean_interval, mean_intervals, wilson_interval
from coldrun.tasks.stats.measures import Measure, parse_measure
from coldrun.tasks.stats.multiplicity import adjust_holm
from coldrun.tasks.stats.nulls import NullGround, measure_nulls, permuted_scores
from coldrun.tasks.stats.paired_intervals import paired_interval
from coldrun.tasks.stats.power import minimum_detectable_effect

if TYPE_CHECKING:
    import polars as pl

FloatArray = NDArray[np.float64]
EXPECTATIONS = ("random", "permuted")
"""Nulls that score by expectation: fractions of a task, so no ups and downs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmUnderTest:
    """One executed arm, with its parsed answers. `refused` says why it gets no verdict, if so."""

    name: str
    role: Role
    answers: ArmAnswers
    mean_answer_seconds: float | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was registered: measures (the primary first), margin, bars, guards."""

    measures: tuple[str, ...]
    k: int
    margin_tasks: float
    minimum_seconds_per_answer: float
    max_infra_share: float
    bars: tuple[BarConfig, ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnalysis:
    """All that the analysis found; the report adds what it was found on.

    `null_scores` has the nulls' scores at the primary measure, task by task in panel order.
    """

    nulls: dict[str, dict[str, MeasurePart]]
    null_scores: dict[str, FloatArray]
    arms: dict[str, dict[str, MeasurePart]]
    gates: tuple[GatePart, ...]
    bars: tuple[BarPart, ...]
    evidence: Evidence
    verdict: Verdict
    exit_code: int
    reasons: tuple[str, ...]
    scores: pl.DataFrame
    repeats: dict[str, Repeats]


def analyse_run(
    tasks: Sequence[Task],
    arms: Sequence[ArmUnderTest],
    *,
    ground: NullGround,
    settings: Settings,
    facts: EvidenceFacts,
) -> RunAnalysis:
    """Analyse a run.

    Args:
        tasks: The panel that was asked, at least one task.
        arms: The executed arms, in the order of the configuration.
        ground: What the nulls read.
        settings: What was registered before the run.
        facts: How the answers came to be; its mean seconds are filled in from the candidates.

    Raises:
        ConfigError: A measure is unknown or does not fit the panel's answers.
    """
    measures = [parse_measure(text) for text in settings.measures]
    scores = score_arms(tasks, [arm.answers for arm in arms], measures)
    judged = arms_under_judgement(arms)
    nulls = {
        measure.text: _null_vectors(tasks, measure, measures[0], judged, ground, settings)
        for measure in measures
    }
    vectors = {
        measure.text: {arm.name: score_vector(scores, arm.name, measure.text) for arm in arms}
        for measure in measures
    }
    repeats = {arm.name: describe_repeats(tasks, arm.answers, measures[0]) for arm in arms}
    gates = _adjust_family(
        [
            _gate(
                arm, arms, measures[0], vectors[measures[0].text], nulls[measures[0].text], settings
            )
            for arm in judged
        ],
        repeats,
    )
    refused = {arm.name for arm in arms if arm.refused is not None}
    bars = tuple(
        _judge_bar(bar, vectors, nulls, settings.seed)
        for bar in settings.bars
        if bar.arm not in refused
    )
    evidence, reasons = judge_evidence(facts)
    outcomes: list[Outcome] = [gate.outcome for gate in gates]
    verdict = judge_verdict(evidence, outcomes, has_replayed_arm=bool(facts.replayed_arms))
    if verdict == "invalid" and evidence != "invalid":
        reasons += tuple(f"{gate.arm}: {gate.reason}" for gate in gates)
    return RunAnalysis(
        nulls=_aggregate(nulls, measures, settings.seed),
        null_scores=nulls[measures[0].text],
        arms=_aggregate(vectors, measures, settings.seed),
        gates=gates,
        bars=bars,
        evidence=evidence,
        verdict=verdict,
        exit_code=exit_code(verdict, outcomes=outcomes, are_bars_met=all(bar.met for bar in bars)),
        reasons=reasons,
        scores=scores,
        repeats=repeats,
    )


def arms_under_judgement(arms: Sequence[ArmUnderTest]) -> list[ArmUnderTest]:
    """The candidates; without any, the first control stands in, else the first floor.

    One that is refused a verdict stands in for nobody, unless there is no other.
    """
    for roles in (("candidate",), ("control",), ("floor",)):
        found = [arm for arm in arms if arm.role in roles]
        if found and roles == ("candidate",):
            return found
        if found:
            return [arm for arm in found if arm.refused is None][:1] or found[:1]
    return []


def summarise(scores: FloatArray, measure: Measure, seed: int) -> MeasurePart:
    """The mean with its interval: Wilson where every task scores 0 or 1, else BCa bootstrap."""
    return summarise_all([scores], [measure], seed)[0]


def summarise_all(
    scores: Sequence[FloatArray], measures: Sequence[Measure], seed: int
) -> list[MeasurePart]:
    """`summarise` for many score vectors of one panel, which share the bootstrap's draws."""
    is_counted = [
        measure.is_binary and bool(np.isin(vector, (0.0, 1.0)).all())
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


def _null_vectors(
    tasks: Sequence[Task],
    measure: Measure,
    primary: Measure,
    judged: Sequence[ArmUnderTest],
    ground: NullGround,
    settings: Settings,
) -> dict[str, FloatArray]:
    vectors = measure_nulls(tasks, measure, primary=primary, k=settings.k, ground=ground)
    if len(tasks) > 1:
        for arm in judged:
            name = "permuted" if len(judged) == 1 else f"permuted:{arm.name}"
            vectors[name] = _permuted(tasks, measure, arm)
    return vectors


def _permuted(tasks: Sequence[Task], measure: Measure, arm: ArmUnderTest) -> FloatArray:
    trials = []
    for trial in range(arm.answers.trials):
        answers = {}
        for task_id, answered in arm.answers.answers.items():
            mine = answered[trial] if trial < len(answered) else None
            answers[task_id] = () if mine is None else mine.items
        trials.append(permuted_scores(answers, tasks, measure))
    return np.asarray(np.mean(np.asarray(trials, dtype=np.float64), axis=0), dtype=np.float64)


def _aggregate(
    vectors: Mapping[str, Mapping[str, FloatArray]], measures: Sequence[Measure], seed: int
) -> dict[str, dict[str, MeasurePart]]:
    places = [(name, measure) for name in vectors[measures[0].text] for measure in measures]
    parts = summarise_all(
        [vectors[measure.text][name] for name, measure in places],
        [measure for _, measure in places],
        seed,
    )
    found: dict[str, dict[str, MeasurePart]] = {}
    for (name, measure), part in zip(places, parts, strict=True):
        found.setdefault(name, {})[measure.text] = part
    return found


def _gate(
    arm: ArmUnderTest,
    arms: Sequence[ArmUnderTest],
    measure: Measure,
    vectors: Mapping[str, FloatArray],
    nulls: Mapping[str, FloatArray],
    settings: Settings,
) -> GatePart:
    mine = vectors[arm.name]
    if arm.refused is not None:
        return GatePart(
            arm=arm.name,
            measure=measure.text,
            outcome="refused",
            reason=arm.refused,
            margin_tasks=settings.margin_tasks,
            mde_tasks=None,
            against=[],
            beaten_by=[],
        )
    own_nulls = {
        name: vector for name, vector in nulls.items() if name.partition(":")[2] in ("", arm.name)
    }
    rivals = {
        other.name: other.role
        for other in arms
        if other.role in ("control", "floor") and other.name != arm.name
    }
    found = judge_candidate(
        mine,
        measure=measure,
        nulls=own_nulls,
        rivals={name: vectors[name] for name in rivals},
        margin_tasks=settings.margin_tasks,
        seed=settings.seed,
        expectations=[name for name in own_nulls if name.partition(":")[0] in EXPECTATIONS],
    )
    return GatePart(
        arm=arm.name,
        measure=measure.text,
        outcome=found.outcome,
        reason=found.reason,
        margin_tasks=settings.margin_tasks,
        mde_tasks=minimum_detectable_effect(len(mine)),
        against=[
            _against(pairing, "null", mine - nulls[pairing.other], settings.seed)
            for pairing in found.against
        ],
        beaten_by=list(found.beaten_by),
        compared=[
            _against(pairing, rivals[pairing.other], mine - vectors[pairing.other], settings.seed)
            for pairing in found.compared
        ],
    )


def _against(pairing: Pairing, role: Role, differences: FloatArray, seed: int) -> AgainstPart:
    interval = paired_interval(differences, seed)
    return AgainstPart(
        arm=pairing.other,
        up=pairing.up,
        down=pairing.down,
        p=pairing.p,
        difference=pairing.difference,
        role=role,
        value=pairing.other_total / pairing.tasks,
        low=interval.low,
        high=interval.high,
    )


def _adjust_family(
    gates: Sequence[GatePart], repeats: Mapping[str, Repeats]
) -> tuple[GatePart, ...]:
    """Holm over every comparison that the report prints; the gate itself is not corrected."""
    printed = [part for gate in gates for part in [*gate.against, *gate.compared]]
    adjusted = iter(adjust_holm([part.p for part in printed]))

    def adjust(parts: Sequence[AgainstPart]) -> list[AgainstPart]:
        return [part.model_copy(update={"holm_p": next(adjusted)}) for part in parts]

    done = []
    for gate in gates:
        floor = repeats[gate.arm].floor
        done.append(
            gate.model_copy(
                update={
                    "against": adjust(gate.against),
                    "compared": adjust(gate.compared),
                    "noise_floor_tasks": None if floor is None else float(floor.band),
                }
            )
        )
    return tuple(done)


def _judge_bar(
    bar: BarConfig,
    vectors: Mapping[str, Mapping[str, FloatArray]],
    nulls: Mapping[str, Mapping[str, FloatArray]],
    seed: int,
) -> BarPart:
    measure = parse_measure(bar.measure)
    mine = vectors[bar.measure][bar.arm]
    if bar.against is None:
        at_least = bar.at_least or 0.0
        part = summarise(mine, measure, seed)
        value = part.value if bar.rule == "point" else part.low
    else:
        known = {**nulls[bar.measure], **vectors[bar.measure]}
        own = f"{bar.against}:{bar.arm}"  # of several candidates, each has a permuted null
        differences = mine - known[own if own in known else bar.against]
        at_least = bar.margin_tasks / len(mine)
        value = (
            float(differences.mean())
            if bar.rule == "point"
            else mean_interval(differences, seed).low
        )
    return BarPart(
        arm=bar.arm,
        measure=bar.measure,
        at_least=at_least,
        value=value,
        met=bool(value >= at_least - 1e-12),
        rule=bar.rule,
        against=bar.against,
    )
