"""The analysis of one run: nulls, aggregates, gates, bars, verdict. Pure.

Everything is paired on the panel's tasks; every number keeps its denominator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coldrun.tasks.config import Config
from coldrun.tasks.config.ablation import refuse_verdict
from coldrun.tasks.judge.evidence import (
    Evidence,
    EvidenceFacts,
    Outcome,
    Verdict,
    exit_code,
    judge_evidence,
    judge_verdict,
)
from coldrun.tasks.judge.gates import adjust_gates, judge_bar, judge_candidate, summarise
from coldrun.tasks.judge.repeats import Repeats, describe_repeats
from coldrun.tasks.judge.report_model import BarPart, ClustersPart, GatePart, MeasurePart
from coldrun.tasks.judge.score_table import ArmAnswers, score_arms, score_vectors
from coldrun.tasks.judge.strata import describe_clusters
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.records import Task
from coldrun.tasks.run.run_record import RunRecord
from coldrun.tasks.stats.measures import Measure, parse_measure
from coldrun.tasks.stats.nulls import (
    NullGround,
    measure_nulls,
    permutation_p,
    permuted_scores,
    random_p,
)

if TYPE_CHECKING:
    import polars as pl

Vectors = dict[str, dict[str, FloatArray]]
"""Measure → arm or null → its scores, in panel order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnalysis:
    """All that the analysis found; the report adds what it was found on.

    `scores` has a row for every arm, task and measure. `vectors` and `null_vectors` are the scores
    by measure and arm. `withheld` names the arms whose scores are not shown.
    """

    nulls: dict[str, dict[str, MeasurePart]]
    arms: dict[str, dict[str, MeasurePart]]
    scores: pl.DataFrame
    vectors: Vectors
    null_vectors: Vectors
    gates: tuple[GatePart, ...]
    bars: tuple[BarPart, ...]
    clusters: ClustersPart | None
    evidence: Evidence
    verdict: Verdict
    exit_code: int
    reasons: tuple[str, ...]
    repeats: dict[str, Repeats]

    @property
    def is_measurement(self) -> bool:
        """Whether the answers may be compared at all."""
        return self.evidence not in ("invalid", "incomplete")

    @property
    def nothing(self) -> set[str]:
        """The arms that did not beat the nulls."""
        return {gate.arm for gate in self.gates if gate.outcome == "measured_nothing"}

    @property
    def withheld(self) -> set[str]:
        """The arms whose scores are not shown."""
        return self.nothing | {gate.arm for gate in self.gates if gate.outcome == "refused"}


def analyse_run(
    record: RunRecord, arms: Sequence[ArmAnswers], facts: EvidenceFacts, *, has_gates: bool = True
) -> RunAnalysis:
    """Analyse the answers to some tasks, on the evidence of `facts`."""
    config, tasks, seed = record.manifest.config, record.tasks, panel_seed(record)
    measures = [parse_measure(text) for text in config.measures]
    primary = measures[0].text
    refused = _refused(config, arms)
    judged = _arms_under_judgement(arms, refused) if has_gates else []
    scores = score_arms(tasks, arms, measures)
    vectors = score_vectors(scores)
    nulls = {
        measure.text: _null_vectors(record, measure, measures[0], judged) for measure in measures
    }
    for arm in arms:
        if arm.config.role == "null":
            for text, found in nulls.items():
                found[arm.name] = vectors[text][arm.name]
    repeats = {arm.name: describe_repeats(tasks, arm, measures[0]) for arm in arms}
    exact = _exact_p(
        [arm for arm in judged if arm.name not in refused],
        tasks,
        measures[0],
        vectors[primary],
        nulls[primary]["random"],
        seed,
    )
    gates = adjust_gates(
        [
            _gate(arm, arms, refused.get(arm.name), config, vectors, nulls, exact, repeats, seed)
            for arm in judged
        ]
    )
    bars = tuple(
        judge_bar(
            bar,
            vectors[bar.measure][bar.arm],
            nulls[bar.measure] | vectors[bar.measure],
            seed=seed,
        )
        for bar in config.bar
        if bar.arm not in refused
    )
    evidence, reasons = judge_evidence(facts)
    outcomes: list[Outcome] = [gate.outcome for gate in gates]
    verdict = judge_verdict(evidence, outcomes, has_replayed_arm=bool(facts.replayed_arms))
    if verdict == "invalid" and evidence != "invalid":
        reasons += tuple(f"{gate.arm}: {gate.reason}" for gate in gates)
    return RunAnalysis(
        nulls=_aggregate(nulls, measures, seed),
        arms=_aggregate(vectors, measures, seed),
        scores=scores,
        vectors=vectors,
        null_vectors=nulls,
        gates=gates,
        bars=bars,
        clusters=describe_clusters(
            tasks, config.measure.cluster, nulls[primary] | vectors[primary], gates, seed=seed
        ),
        evidence=evidence,
        verdict=verdict,
        exit_code=exit_code(verdict, outcomes=outcomes, are_bars_met=all(bar.met for bar in bars)),
        reasons=reasons,
        repeats=repeats,
    )


def panel_seed(record: RunRecord) -> int:
    """The seed of all resampling, from the panel's hash."""
    return int(record.manifest.panel_digest.removeprefix("sha256:")[:8], 16)


def null_means(
    tasks: Sequence[Task], config: Config, lock: Mapping[str, Any], *, measure: str
) -> dict[str, float]:
    """The mean score of each null that needs no candidate, on frozen tasks, in report order."""
    nulls = measure_nulls(
        tasks,
        parse_measure(measure),
        primary=parse_measure(config.primary),
        k=config.k,
        ground=_null_ground(lock),
    )
    return {name: float(scores.mean()) for name, scores in nulls.items()}


def _null_ground(lock: Mapping[str, Any]) -> NullGround:
    corpus = lock["panel"]["corpus"]
    return NullGround(corpus_items=corpus["items"], change_counts=dict(corpus["most_changed"]))


def _refused(config: Config, arms: Sequence[ArmAnswers]) -> dict[str, str]:
    return {
        arm.name: reason
        for arm in arms
        if (reason := refuse_verdict(arm.name, arm.config.component, config.panel.gold_from))
    }


def _arms_under_judgement(
    arms: Sequence[ArmAnswers], refused: Mapping[str, str]
) -> list[ArmAnswers]:
    # A refused arm stands in for a candidate only when there is no other.
    for role in ("candidate", "control", "floor"):
        found = [arm for arm in arms if arm.config.role == role]
        if found and role == "candidate":
            return found
        if found:
            return [arm for arm in found if arm.name not in refused][:1] or found[:1]
    return []


def _null_vectors(
    record: RunRecord, measure: Measure, primary: Measure, judged: Sequence[ArmAnswers]
) -> dict[str, FloatArray]:
    vectors = measure_nulls(
        record.tasks,
        measure,
        primary=primary,
        k=record.manifest.config.k,
        ground=_null_ground(record.manifest.lock),
    )
    if len(record.tasks) > 1:
        for arm in judged:
            name = "permuted" if len(judged) == 1 else f"permuted:{arm.name}"
            trials = [
                permuted_scores(arm.items_of_trial(trial), record.tasks, measure)
                for trial in range(arm.trials)
            ]
            vectors[name] = np.asarray(np.mean(trials, axis=0), dtype=np.float64)
    return vectors


def _aggregate(
    vectors: Vectors, measures: Sequence[Measure], seed: int
) -> dict[str, dict[str, MeasurePart]]:
    places = [(name, measure) for name in vectors[measures[0].text] for measure in measures]
    parts = summarise(
        [vectors[measure.text][name] for name, measure in places],
        [measure for _, measure in places],
        seed,
    )
    found: dict[str, dict[str, MeasurePart]] = {}
    for (name, measure), part in zip(places, parts, strict=True):
        found.setdefault(name, {})[measure.text] = part
    return found


def _gate(  # noqa: PLR0913, PLR0917  the parts of one analysis
    arm: ArmAnswers,
    arms: Sequence[ArmAnswers],
    refused: str | None,
    config: Config,
    vectors: Vectors,
    nulls: Vectors,
    exact: Mapping[str, dict[str, float]],
    repeats: Mapping[str, Repeats],
    seed: int,
) -> GatePart:
    primary, margin = config.primary, config.measure.margin_tasks
    if refused is not None:
        gate = GatePart(
            arm=arm.name,
            measure=primary,
            outcome="refused",
            reason=refused,
            margin_tasks=margin,
            mde_tasks=None,
            against=[],
            beaten_by=[],
        )
    else:
        gate = judge_candidate(
            arm.name,
            vectors[primary][arm.name],
            measure=primary,
            nulls=nulls[primary],
            rivals={
                other.name: (other.config.role, vectors[primary][other.name])
                for other in arms
                if other.config.role in ("control", "floor") and other.name != arm.name
            },
            margin_tasks=margin,
            exact_p=exact[arm.name],
            seed=seed,
        )
    floor = repeats[arm.name].floor
    return gate.model_copy(
        update={"noise_floor_tasks": None if floor is None else float(floor.band_tasks)}
    )


def _exact_p(
    judged: Sequence[ArmAnswers],
    tasks: Sequence[Task],
    measure: Measure,
    scores: Mapping[str, FloatArray],
    expected: FloatArray,
    seed: int,
) -> dict[str, dict[str, float]]:
    """By arm, the p of the nulls that score by expectation, each by its own distribution."""
    found: dict[str, dict[str, float]] = {arm.name: {} for arm in judged}
    if measure.definition.is_binary:
        for arm in judged:
            found[arm.name]["random"] = random_p(scores[arm.name], expected)
    if len(tasks) > 1:
        answers = [[arm.items_of_trial(trial) for trial in range(arm.trials)] for arm in judged]
        for arm, p in zip(judged, permutation_p(answers, tasks, measure, seed=seed), strict=True):
            found[arm.name]["permuted"] = p
    return found


def find_facts(record: RunRecord, arms: Sequence[ArmAnswers]) -> EvidenceFacts:
    """How all answers of a run came to be."""
    config, captures = record.manifest.config, record.captures
    judged = _arms_under_judgement(arms, _refused(config, arms))
    seconds = [mean for arm in judged if (mean := arm.mean_seconds) is not None]
    reported = [
        f"{session['arm']}: {reason}"
        for session in record.sessions
        for reason in session["invalid"]
    ]
    replayed = {capture.arm for capture in captures if capture.evidence == "replayed"}
    return EvidenceFacts(
        planned=sum(record.manifest.planned.values()),
        executed=sum(capture.evidence == "executed" for capture in captures),
        replayed=sum(capture.evidence == "replayed" for capture in captures),
        infra=sum(arm.infra for arm in arms),
        max_infra_share=config.run.max_infra_share,
        mean_answer_seconds=min(seconds, default=None),
        minimum_seconds_per_answer=config.measure.minimum_seconds_per_answer,
        invalid=tuple(dict.fromkeys([*record.invalid, *reported])),
        infra_by_arm={arm.name: (arm.infra, record.manifest.planned[arm.name]) for arm in arms},
        replayed_arms=[arm.name for arm in judged if arm.name in replayed],
    )
