"""The last stage of a run: its answers landed, judged, and the judgement landed beside them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

from coldrun.tasks.judge.build_report import BuiltReport, build_report
from coldrun.tasks.judge.load_run import load_report
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.run.live_run import end_run, find_run, keep_live
from coldrun.tasks.run.prepare import Evaluation, prepare_evaluation_point
from coldrun.tasks.run.run_lifecycle import (
    RunRequest,
    StartedRun,
    collect_record,
    execute_locally,
    is_resumable,
    land_run,
    start_run,
)
from coldrun.tasks.run.run_record import RunRecord
from coldrun.warehouse.digests import digest_files, seal_row
from coldrun.warehouse.writer import write_rows


def finish_run(started: StartedRun) -> BuiltReport:
    """End the sessions, land the answers, judge them; an interrupted run too."""
    with started.held:
        land_run(started)
        return judge_run(started)


def judge_run(started: StartedRun) -> BuiltReport:
    """Analyse a landed run, and land scores and summary."""
    record = started.record or collect_record(started)
    built = land_report(started.warehouse, record)
    if record.status == "finished" and started.is_complete:
        started.store.remove()
    return built


def judge_by_id(warehouse: Path, run_id: str, scratch: Path) -> str:
    """Judge the landed run of an id, and let go of it; gives the verdict."""
    built = judge_run(find_run(warehouse, run_id, scratch))
    end_run(run_id)
    current_watch().results[run_id] = built
    return built.report.verdict


def report_of(warehouse: Path, run_id: str) -> BuiltReport:
    """The report of a run that has ended: at hand if this process judged it, else read."""
    at_hand = current_watch().results.pop(run_id, None)
    return load_report(warehouse, run_id) if at_hand is None else at_hand


def land_report(warehouse: Path, record: RunRecord) -> BuiltReport:
    """Analyse a record, and land its scores and its line in `runs`."""
    built = build_report(record)
    manifest = record.manifest
    write_rows(warehouse, "scores", manifest.run_id, built.score_rows)
    if built.other_rows:
        write_rows(warehouse, "other_scores", manifest.run_id, built.other_rows)
    text = canonical_json({**manifest.to_values(), "invalid": list(record.invalid)}).decode()
    sealed = seal_row(text, digest_files(warehouse, manifest.run_id))
    report = built.report.model_copy(update={"digest": sealed["digest"]})
    built = replace(built, report=report)
    row = {
        "run_id": manifest.run_id,
        "name": manifest.name,
        "status": record.status,
        "started_at": dt.datetime.fromisoformat(manifest.started_at),
        "finished_at": max((leg.ended_at for leg in record.legs), default=None),
        "wall_seconds": record.wall_seconds,
        "legs": [leg.to_row() for leg in record.legs],
        "panel_digest": manifest.panel_digest,
        "lock_digest": manifest.lock_digest,
        "verdict": report.verdict,
        "evidence": report.evidence,
        "exit_code": report.exit_code,
        "product_repo": report.point and report.point.repo,
        "product_commit": report.point and report.point.commit,
        "product_tree": report.point and report.point.tree,
        "is_dirty": report.point is not None and report.point.is_dirty,
        "environment_digest": manifest.environment.get("digest"),
        "planned": report.counts.planned,
        "executed": report.counts.executed,
        "replayed": report.counts.replayed,
        "resumed": report.counts.resumed,
        "infra": report.counts.infra,
        "manifest": text,
        **sealed,
    }
    write_rows(warehouse, "runs", manifest.run_id, [row])
    return built


def run_here(evaluation: Evaluation, request: RunRequest, commit: str | None) -> BuiltReport:
    """Check out, plan, ask, land and judge; a run that was begun under its id goes on."""
    if request.run_id is not None and is_resumable(request.warehouse, request.run_id):
        request = replace(request, mode="resume", resume=request.run_id)
    if evaluation.config.product is not None:
        current_watch().on_phase("checking out")
    point = prepare_evaluation_point(evaluation, commit)
    return answer_here(start_run(evaluation, request, point=point))


def answer_here(started: StartedRun) -> BuiltReport:
    """Ask, land and judge a run that was started in this process; the watch keeps the report."""
    keep_live(started)
    evaluation, run_id = started.evaluation, started.run_id
    try:
        execute_locally(started, concurrency=evaluation.config.run.concurrency)
        current_watch().on_phase("judging")
        built = finish_run(started)
    except BaseException:
        end_run(run_id, is_abandoned=True)
        raise
    end_run(run_id)
    current_watch().results[run_id] = built
    return built
