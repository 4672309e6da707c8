"""From what a run left behind to its report: parse, analyse, put into words. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from coldrun.tasks.config import PricesConfig, ProcessArm
from coldrun.tasks.freeze.distribution import describe_distribution
from coldrun.tasks.freeze.parts import Part
from coldrun.tasks.judge.attribution import attribute, usage_warnings
from coldrun.tasks.judge.cost_model import pick
from coldrun.tasks.judge.costs import build_costs
from coldrun.tasks.judge.evidence import EvidenceFacts
from coldrun.tasks.judge.misses import misses_of_arm
from coldrun.tasks.judge.report_model import (
    ArmPart,
    Counts,
    DistributionPart,
    OtherPart,
    PanelPart,
    PartSize,
    PointPart,
    Report,
)
from coldrun.tasks.judge.run_analysis import RunAnalysis, analyse_run, find_facts, panel_seed
from coldrun.tasks.judge.score_table import (
    METHOD_VERSION,
    ArmAnswers,
    ScoredArm,
    read_arm,
    score_arms,
)
from coldrun.tasks.judge.strata import split_by_strata
from coldrun.tasks.judge.warnings import changes_after_the_fact, collect_warnings
from coldrun.tasks.lib.plain_text import cut_text
from coldrun.tasks.lib.records import Task
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.run_record import RunRecord
from coldrun.tasks.stats.intervals import population_interval
from coldrun.tasks.stats.measures import parse_measure

if TYPE_CHECKING:
    import polars as pl

P = TypeVar("P", Report, OtherPart)

MOST_WARNING = 1000
"""Characters; what a warning quotes may be longer."""

SPANS = ("startup_seconds", "indexing_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltReport:
    """A report with the per-task scores it rests on, as rows of the `scores` table.

    `other_rows` are scores of tasks outside of the primary part.
    """

    report: Report
    score_rows: list[dict[str, Any]]
    other_rows: list[dict[str, Any]]


def build_report(record: RunRecord, *, prices: PricesConfig | None = None) -> BuiltReport:
    """Analyse a run and describe it; `prices` are others than those it was started with."""
    manifest = record.manifest
    config, kind = manifest.config, manifest.config.panel.answer_kind
    captures: dict[str, list[Capture]] = defaultdict(list)
    for capture in record.captures:
        captures[capture.arm].append(capture)
    whole = [
        read_arm(arm, captures[arm.name], trials=manifest.trials[arm.name], kind=kind)
        for arm in config.arms
    ]
    facts = find_facts(record, whole)
    (primary, tasks), *others = record.parts.items()
    answered, record = record, record.among(tasks)
    arms = [arm.among(tasks) for arm in whole]
    analysis = analyse_run(record, arms, facts)
    arm_parts = [_arm_part(arm, record, analysis) for arm in arms]
    if primary == "random" and "population" in manifest.lock["panel"]:
        arm_parts = [_of_population(arm, manifest.lock["panel"]["population"]) for arm in arm_parts]
    scored = [_scored(arm, config.primary, analysis) for arm in arms]
    is_measurement, seed = analysis.is_measurement, panel_seed(record)
    attribution = attribute(record, scored, is_measurement=is_measurement, seed=seed)
    vectors = analysis.vectors[config.primary]
    report = Report(
        run_id=manifest.run_id,
        name=manifest.name,
        verdict=analysis.verdict,
        evidence=analysis.evidence,
        exit_code=analysis.exit_code,
        started_at=manifest.started_at,
        wall_seconds=record.wall_seconds,
        legs=list(record.legs),
        status=record.status,
        counts=Counts(
            tasks=len(record.tasks),
            planned=sum(manifest.planned.values()),
            infra=sum(arm.infra for arm in whole),
            resumed=sum(capture.is_resumed for capture in answered.captures),
            **_count_captures(answered.captures),
        ),
        panel=_panel(record),
        point=None if manifest.point is None else pick(PointPart, manifest.point),
        environment=manifest.environment,
        primary=config.primary,
        arms=[*_null_parts(record, analysis), *arm_parts],
        gates=list(analysis.gates),
        bars=list(analysis.bars),
        warnings=[
            cut_text(warning, MOST_WARNING)
            for warning in (
                *collect_warnings(answered, record.tasks, whole, arm_parts),
                *usage_warnings(attribution.usage),
            )
        ],
        reasons=list(analysis.reasons),
        strata=split_by_strata(
            record.tasks, config, analysis.null_vectors[config.primary] | vectors
        ),
        production_nulls=manifest.lock["panel"].get("nulls", {}),
        ablations=attribution.ablations,
        usage=attribution.usage,
        costs=build_costs(
            record,
            scored,
            judged=[gate.arm for gate in analysis.gates],
            is_measurement=is_measurement,
            prices=prices,
            seed=seed,
        ),
        digest=record.digest,
        not_sealed=manifest.unsealed,
        without_product=manifest.knock_outs,
        method=METHOD_VERSION,
        clusters=analysis.clusters,
        parts=[PartSize(name=name, tasks=len(each)) for name, each in answered.parts.items()],
        others=[_other_part(name, each, answered, whole, facts) for name, each in others],
    )
    report = _name_part(report, primary)
    return BuiltReport(
        report=report,
        score_rows=list(_score_rows(record, analysis.scores, analysis.nothing)),
        other_rows=list(_other_rows(answered, record.tasks, whole, analysis.nothing)),
    )


def _name_part(part: P, name: Part) -> P:
    """The same with its arms and gates marked as of a part of the panel."""
    marked = {
        "arms": [arm.model_copy(update={"part": name}) for arm in part.arms],
        "gates": [gate.model_copy(update={"part": name}) for gate in part.gates],
    }
    return part.model_copy(update=marked)


def _null_parts(record: RunRecord, analysis: RunAnalysis) -> Iterator[ArmPart]:
    for name, measures in analysis.nulls.items():
        if name not in analysis.vectors[record.manifest.config.primary]:
            kind = name.partition(":")[0]
            yield ArmPart(name=name, role="null", kind=kind, n=len(record.tasks), measures=measures)


def _other_part(
    name: Part,
    tasks: Sequence[Task],
    answered: RunRecord,
    whole: Sequence[ArmAnswers],
    facts: EvidenceFacts,
) -> OtherPart:
    """What the arms that were asked these tasks came to on them."""
    record, is_all = answered.among(tasks), name == "population"
    arms = [arm.among(tasks) for arm in whole if not (is_all and _is_sampled(arm))]
    analysis = analyse_run(record, arms, facts, has_gates=not is_all)
    parts = [_arm_part(arm, record, analysis) for arm in arms]
    drawn_from = answered.manifest.lock["panel"]["population"]
    found = OtherPart(
        name=name,
        tasks=len(tasks),
        arms=[*_null_parts(record, analysis), *(_of_population(arm, drawn_from) for arm in parts)],
        gates=list(analysis.gates),
    )
    return _name_part(found, name)


def _is_sampled(arm: ArmAnswers) -> bool:
    return isinstance(arm.config, ProcessArm)


def _of_population(arm: ArmPart, population: int) -> ArmPart:
    """The same with what its scores say of the tasks that the part was drawn from."""
    measures = {}
    for name, part in arm.measures.items():
        found = population_interval(
            part.value, part.count, arm.n, population, (part.low, part.high)
        )
        limits = {"population_low": found.low, "population_high": found.high}
        measures[name] = part.model_copy(update=limits)
    return arm.model_copy(update={"measures": measures})


def _scored(arm: ArmAnswers, primary: str, analysis: RunAnalysis) -> ScoredArm:
    floor = analysis.repeats[arm.name].floor
    return ScoredArm(
        config=arm.config,
        captures=[capture for capture in arm.captures if capture.trial < arm.trials],
        trials=arm.trials,
        scores=analysis.vectors[primary][arm.name],
        noise_tasks=0.0 if floor is None else float(floor.band_tasks),
        is_comparable=arm.name not in analysis.withheld,
    )


def _count_captures(captures: Sequence[Capture]) -> dict[str, int]:
    return {
        "executed": sum(capture.evidence == "executed" for capture in captures),
        "replayed": sum(capture.evidence == "replayed" for capture in captures),
        "abstained": sum(capture.reply.status == "abstained" for capture in captures),
        "degraded": sum(bool(capture.reply.degraded) for capture in captures),
    }


def _panel(record: RunRecord) -> PanelPart:
    manifest = record.manifest
    locked = manifest.lock["panel"]
    distribution = describe_distribution(record.tasks)
    return PanelPart(
        name=manifest.name,
        digest=manifest.panel_digest,
        base=locked["base"] and locked["base"]["commit"],
        head=locked["head"] and locked["head"]["commit"],
        candidates=locked["candidates"],
        solvable=locked["solvable"],
        drops=locked["drops"],
        distribution=pick(DistributionPart, distribution),
        kind=manifest.config.panel.kind,
        names_gold_share=distribution.names_gold_share,
        uses=[use.model_dump(mode="json") for use in manifest.config.panel.used_for],
        changes_after_the_fact=changes_after_the_fact(manifest),
    )


def _arm_part(arm: ArmAnswers, record: RunRecord, analysis: RunAnalysis) -> ArmPart:
    sessions = [session for session in record.sessions if session["arm"] == arm.name]
    repeats = analysis.repeats[arm.name]
    replayed = [capture for capture in arm.captures if capture.evidence == "replayed"]
    spans = {name: sum(s[name] or 0.0 for s in sessions) if sessions else None for name in SPANS}
    return ArmPart(
        name=arm.name,
        role=arm.config.role,
        kind=arm.config.kind,
        n=len(record.tasks),
        measures=analysis.arms[arm.name],
        trials=arm.trials,
        infra=arm.infra,
        **_count_captures(arm.captures),
        answer_seconds=arm.mean_seconds,
        startup_seconds=spans["startup_seconds"],
        indexing_seconds=spans["indexing_seconds"],
        is_withheld=arm.name in analysis.withheld,
        stability=repeats.stability,
        misses=misses_of_arm(arm, record.tasks, primary=record.manifest.config.primary),
        replayed_from=sorted({c.source_run_id for c in replayed if c.source_run_id}),
        budgets=repeats.budgets,
    )


def _other_rows(
    answered: RunRecord, tasks: Sequence[Task], whole: Sequence[ArmAnswers], nothing: set[str]
) -> Iterator[dict[str, Any]]:
    """The scores of the arms on the tasks that they were asked beside `tasks`."""
    measures = [parse_measure(text) for text in answered.manifest.config.measures]
    asked = {task.id: task for found in answered.parts.values() for task in found}
    beside = [asked[name] for name in sorted(asked.keys() - {task.id for task in tasks})]
    for is_sampled in (True, False):
        others = [task for task in beside if task.parts or not is_sampled]
        arms = [arm.among(others) for arm in whole if _is_sampled(arm) == is_sampled]
        if others and arms:
            record = answered.among(others)
            for row in _score_rows(record, score_arms(others, arms, measures), nothing):
                yield {**row, "n": None}


def _score_rows(
    record: RunRecord, scores: pl.DataFrame, nothing: set[str]
) -> Iterator[dict[str, Any]]:
    manifest = record.manifest
    arms = {arm.name: arm for arm in manifest.config.arms}
    kinds: dict[str, set[str]] = defaultdict(set)
    for capture in record.captures:
        kinds[capture.arm].add(capture.evidence)
    point = manifest.point
    for row in scores.iter_rows(named=True):
        name = row["arm"]
        yield {
            **row,
            "run_id": manifest.run_id,
            "panel_digest": manifest.panel_digest,
            "product_commit": point and point.commit,
            "product_tree": point and point.tree,
            "role": arms[name].role,
            "kind": arms[name].kind,
            "n": len(record.tasks),
            "evidence": "mixed" if len(kinds[name]) > 1 else next(iter(kinds[name]), "missing"),
            "measured_nothing": name in nothing,
            "method_version": METHOD_VERSION,
        }
