"""The stages of a run one after the other in this process, without an orchestrator."""

from __future__ import annotations

from coldrun.tasks.judge.build_report import BuiltReport
from coldrun.tasks.judge.land_judgement import judge_by_id
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.run.live_run import end_run, keep_live
from coldrun.tasks.run.prepare import Evaluation, prepare_evaluation_point
from coldrun.tasks.run.run_lifecycle import (
    RunRequest,
    StartedRun,
    execute_locally,
    land_run,
    start_run,
)


def run_here(evaluation: Evaluation, request: RunRequest, commit: str | None) -> BuiltReport:
    """Check out, plan, ask, land and judge; an interrupted run too."""
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
        land_run(started)
        judge_by_id(started.warehouse, run_id, evaluation.scratch)
    except BaseException:
        end_run(run_id, is_abandoned=True)
        raise
    built: BuiltReport = current_watch().results[run_id]
    return built
