"""From what a run left behind to its report: parse, analyse, put into words. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from coldrun.tasks.config import ArmConfig, Config, PricesConfig
from coldrun.tasks.config.gold_from import refuse_verdict
from coldrun.tasks.freeze.distribution import describe_distribution
from coldrun.tasks.judge.attribution import attribute, usage_warnings
from coldrun.tasks.judge.costs import build_costs
from coldrun.tasks.judge.evidence import EvidenceFacts
from coldrun.tasks.judge.misses import misses_of_arm
from coldrun.tasks.judge.registered import changes_after_the_fact
from coldrun.tasks.judge.report_model import (
    ArmPart,
    Counts,
    DistributionPart,
    LegPart,
    PanelPart,
    PointPart,
    Report,
)
from coldrun.tasks.judge.run_analysis import (
    ArmUnderTest,
    RunAnalysis,
    Settings,
    analyse_run,
    arms_under_judgement,
)
from coldrun.tasks.judge.score_table import METHOD_VERSION, Answered, ArmAnswers, score_vector
from coldrun.tasks.judge.scored import ParseAnswer, ScoredArm, read_capture
from coldrun.tasks.judge.strata import split_by_strata, weight_to_production
from coldrun.tasks.judge.warnings import collect_warnings
from coldrun.tasks.lib.records import Task
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.manifest import Manifest
from coldrun.tasks.run.run_record import RunRecord
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.nulls import NullGround, measure_nulls


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltReport:
    """A report with the per-task scores it rests on, as rows of the `scores` table."""

    report: Report
    score_rows: list[dict[str, Any]]


def build_report(
    record: RunRecord, parse: ParseAnswer, *, prices: PricesConfig | None = None
) -> BuiltReport:
    """Analyse a run and describe it; `prices` are others than those it was started with."""
    manifest = record.manifest
    config = manifest.config
    by_arm: dict[str, list[Capture]] = defaultdict(list)
    for capture in record.captures:
        by_arm[capture.arm].append(capture)
    answers = {arm.name: _answers(arm, record, by_arm[arm.name], parse) for arm in config.arms}
    arms = [
        ArmUnderTest(
            name=arm.name,
            role=arm.role,
            answers=answers[arm.name],
            mean_answer_seconds=_mean_seconds(by_arm[arm.name]),
            refused=refuse_verdict(arm.name, arm.component, config.panel.gold_from),
        )
        for arm in config.arms
    ]
    counts = _count(record, answers)
    analysis = analyse_run(
        record.tasks,
        arms,
        ground=_null_ground(manifest.lock),
        settings=_settings(manifest),
        facts=_facts(record, counts, arms, answers),
    )
    nothing = {gate.arm for gate in analysis.gates if gate.outcome == "measured_nothing"}
    withheld = nothing | {gate.arm for gate in analysis.gates if gate.outcome == "refused"}
    arm_parts = [_arm_part(arm, record, analysis, answers, withheld) for arm in config.arms]
    scored = [_scored(arm, record, by_arm[arm.name], analysis, withheld) for arm in config.arms]
    is_measurement = analysis.evidence not in ("invalid", "incomplete")
    attribution = attribute(record, scored, is_measurement=is_measurement, seed=_seed(manifest))
    report = Report(
        run_id=manifest.run_id,
        name=manifest.name,
        verdict=analysis.verdict,
        evidence=analysis.evidence,
        exit_code=analysis.exit_code,
        started_at=manifest.started_at,
        wall_seconds=record.wall_seconds,
        legs=[LegPart(**asdict(leg)) for leg in record.legs],
        status=record.status,
        counts=counts,
        panel=_panel(record),
        point=_point(manifest),
        environment=manifest.environment,
        primary=config.primary,
        arms=[*_null_parts(analysis, len(record.tasks)), *arm_parts],
        gates=list(analysis.gates),
        bars=list(analysis.bars),
        warnings=[
            *collect_warnings(record, answers, arm_parts),
            *usage_warnings(attribution.usage),
        ],
        reasons=list(analysis.reasons),
        strata=split_by_strata(record.tasks, config, analysis.scores, analysis.null_scores),
        production=weight_to_production(
            record.tasks, config, analysis.scores, manifest.lock["panel"].get("population")
        ),
        production_nulls=manifest.lock["panel"].get("nulls", {}),
        ablations=attribution.ablations,
        usage=attribution.usage,
        costs=build_costs(
            record,
            scored,
            judged=[gate.arm for gate in analysis.gates],
            is_measurement=is_measurement,
            parse=parse,
            prices=prices,
            seed=_seed(manifest),
        ),
        method=METHOD_VERSION,
    )
    return BuiltReport(report=report, score_rows=list(_score_rows(record, analysis, nothing)))


def null_means(
    tasks: Sequence[Task], config: Config, lock: Mapping[str, Any], *, measure: str
) -> dict[str, float]:
    """What every null that needs no candidate scores on frozen tasks, in the order of reports."""
    nulls = measure_nulls(
        tasks,
        parse_measure(measure),
        primary=parse_measure(config.primary),
        k=config.k,
        ground=_null_ground(lock),
    )
    return {name: float(scores.mean()) for name, scores in nulls.items()}


def _null_ground(lock: Mapping[str, Any]) -> NullGround:
    """What the nulls read of the corpus, from the lock."""
    corpus = lock["panel"]["corpus"]
    return NullGround(corpus_items=corpus["items"], change_counts=dict(corpus["most_changed"]))


def _settings(manifest: Manifest) -> Settings:
    config = manifest.config
    return Settings(
        measures=config.measures,
        k=config.k,
        margin_tasks=config.measure.margin_tasks,
        minimum_seconds_per_answer=config.measure.minimum_seconds_per_answer,
        max_infra_share=config.run.max_infra_share,
        bars=config.bar,
        seed=_seed(manifest),
    )


def _seed(manifest: Manifest) -> int:
    return int(manifest.panel_digest.removeprefix("sha256:")[:8], 16)


def _scored(
    arm: ArmConfig,
    record: RunRecord,
    captures: Sequence[Capture],
    analysis: RunAnalysis,
    withheld: set[str],
) -> ScoredArm:
    """An arm as its costs are described: the answers that were planned, with their scores."""
    manifest = record.manifest
    trials = manifest.trials[arm.name]
    floor = analysis.repeats[arm.name].floor
    return ScoredArm(
        config=arm,
        captures=[capture for capture in captures if capture.trial < trials],
        trials=trials,
        scores=score_vector(analysis.scores, arm.name, manifest.config.primary),
        noise_tasks=0.0 if floor is None else float(floor.band),
        is_comparable=arm.name not in withheld,
    )


def _answers(
    arm: ArmConfig, record: RunRecord, captures: Sequence[Capture], parse: ParseAnswer
) -> ArmAnswers:
    trials = record.manifest.trials[arm.name]
    kind = record.manifest.config.panel.answer_kind
    found: dict[str, list[Answered | None]] = {}
    for capture in captures:
        if capture.trial < trials:
            slots = found.setdefault(capture.task_id, [None] * trials)
            slots[capture.trial] = read_capture(capture, arm, kind, parse)
    return ArmAnswers(name=arm.name, trials=trials, answers=found)


def _count(record: RunRecord, answers: Mapping[str, ArmAnswers]) -> Counts:
    captures = record.captures
    return Counts(
        tasks=len(record.tasks),
        planned=sum(record.manifest.planned.values()),
        executed=sum(capture.evidence == "executed" for capture in captures),
        replayed=sum(capture.evidence == "replayed" for capture in captures),
        resumed=sum(capture.is_resumed for capture in captures),
        infra=sum(_count_infra(arm) for arm in answers.values()),
        abstained=sum(capture.reply.status == "abstained" for capture in captures),
        degraded=sum(bool(capture.reply.degraded) for capture in captures),
    )


def _count_infra(arm: ArmAnswers) -> int:
    return sum(
        answered is not None and answered.is_infra
        for trials in arm.answers.values()
        for answered in trials
    )


def _facts(
    record: RunRecord,
    counts: Counts,
    arms: Sequence[ArmUnderTest],
    answers: Mapping[str, ArmAnswers],
) -> EvidenceFacts:
    config = record.manifest.config
    seconds = [
        arm.mean_answer_seconds
        for arm in arms_under_judgement(arms)
        if arm.mean_answer_seconds is not None
    ]
    reported = [
        f"{session['arm']}: {reason}"
        for session in record.sessions
        for reason in session["invalid"]
    ]
    executed = {capture.arm for capture in record.captures if capture.evidence == "executed"}
    replayed = {capture.arm for capture in record.captures} - executed
    return EvidenceFacts(
        planned=counts.planned,
        executed=counts.executed,
        replayed=counts.replayed,
        infra=counts.infra,
        max_infra_share=config.run.max_infra_share,
        mean_answer_seconds=min(seconds, default=None),
        minimum_seconds_per_answer=config.measure.minimum_seconds_per_answer,
        invalid=tuple(dict.fromkeys([*record.invalid, *reported])),
        infra_by_arm={
            name: (_count_infra(arm), record.manifest.planned[name])
            for name, arm in answers.items()
        },
        replayed_arms=[arm.name for arm in arms_under_judgement(arms) if arm.name in replayed],
    )


def _mean_seconds(captures: Sequence[Capture]) -> float | None:
    seconds = [
        capture.reply.seconds
        for capture in captures
        if capture.evidence == "executed" and not capture.is_infra
    ]
    return fmean(seconds) if seconds else None


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
        distribution=DistributionPart(
            shapes=distribution.shapes,
            top_share=distribution.top_share,
            effective_shapes=distribution.effective_shapes,
        ),
        kind=manifest.config.panel.kind,
        names_gold_share=distribution.names_gold_share,
        uses=[use.model_dump(mode="json") for use in manifest.config.panel.used_for],
        changes_after_the_fact=changes_after_the_fact(manifest),
    )


def _point(manifest: Manifest) -> PointPart | None:
    point = manifest.point
    if point is None:
        return None
    return PointPart(
        repo=point.repo,
        commit=point.commit,
        tree=point.tree,
        is_dirty=point.is_dirty,
        setup_commit=point.setup_commit,
    )


def _null_parts(analysis: RunAnalysis, tasks: int) -> Iterator[ArmPart]:
    for name, measures in analysis.nulls.items():
        yield ArmPart(
            name=name,
            role="null",
            kind=name.partition(":")[0],
            n=tasks,
            measures=measures,
        )


def _arm_part(
    arm: ArmConfig,
    record: RunRecord,
    analysis: RunAnalysis,
    answers: Mapping[str, ArmAnswers],
    withheld: set[str],
) -> ArmPart:
    captures = [capture for capture in record.captures if capture.arm == arm.name]
    sessions = [session for session in record.sessions if session["arm"] == arm.name]
    return ArmPart(
        name=arm.name,
        role=arm.role,
        kind=arm.kind,
        n=len(record.tasks),
        measures=analysis.arms[arm.name],
        trials=record.manifest.trials[arm.name],
        executed=sum(capture.evidence == "executed" for capture in captures),
        replayed=sum(capture.evidence == "replayed" for capture in captures),
        infra=_count_infra(answers[arm.name]),
        abstained=sum(capture.reply.status == "abstained" for capture in captures),
        degraded=sum(bool(capture.reply.degraded) for capture in captures),
        answer_seconds=_mean_seconds(captures),
        startup_seconds=_sum_of(sessions, "startup_seconds"),
        indexing_seconds=_sum_of(sessions, "indexing_seconds"),
        is_withheld=arm.name in withheld,
        stability=analysis.repeats[arm.name].stability,
        misses=misses_of_arm(
            answers[arm.name].answers,
            record.tasks,
            trials=record.manifest.trials[arm.name],
            primary=record.manifest.config.primary,
        ),
        replayed_from=sorted(
            {
                capture.source_run_id
                for capture in captures
                if capture.evidence == "replayed" and capture.source_run_id
            }
        ),
    )


def _sum_of(sessions: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return sum(session[name] or 0.0 for session in sessions) if sessions else None


def _score_rows(
    record: RunRecord, analysis: RunAnalysis, nothing: set[str]
) -> Iterator[dict[str, Any]]:
    manifest = record.manifest
    arms = {arm.name: arm for arm in manifest.config.arms}
    evidence = {
        arm.name: _arm_evidence([c for c in record.captures if c.arm == arm.name])
        for arm in manifest.config.arms
    }
    point = manifest.point
    for row in analysis.scores.iter_rows(named=True):
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
            "evidence": evidence[name],
            "measured_nothing": name in nothing,
            "method_version": METHOD_VERSION,
        }


def _arm_evidence(captures: Sequence[Capture]) -> str:
    kinds = {capture.evidence for capture in captures}
    return "mixed" if len(kinds) > 1 else next(iter(kinds), "missing")
