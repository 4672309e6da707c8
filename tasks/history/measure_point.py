"""One point of a history, measured as an ordinary run; free of any orchestrator."""

from __future__ import annotations

from dataclasses import dataclass

from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.run.live_run import end_run, keep_live
from coldrun.tasks.run.prepare import Evaluation, prepare_evaluation_point
from coldrun.tasks.run.run_lifecycle import RunRequest, execute_locally, start_run


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRequest:
    """Which commit to measure, and how. `label` is for people; `repo` stands in for the panel's."""

    evaluation: Evaluation
    request: RunRequest
    commit: str
    label: str
    repo: str | None = None


def measure_point(ask: PointRequest) -> Report:
    """Check out, set up, ask, land and judge one point.

    Returns:
        The report of its run; of an interrupted run with what had finished.

    Raises:
        ColdrunError: The point cannot be checked out, set up or asked. What had been answered
            stays and can be resumed.
    """
    point = prepare_evaluation_point(ask.evaluation, ask.commit)
    started = start_run(ask.evaluation, ask.request, point=point)
    keep_live(started)
    try:
        execute_locally(started, concurrency=ask.evaluation.config.run.concurrency)
    except BaseException:
        end_run(started.run_id, is_abandoned=True)
        raise
    report = finish_run(started).report
    end_run(started.run_id)
    return report
