"""One point of a history, measured as an ordinary run; free of any orchestrator."""

from __future__ import annotations

from dataclasses import dataclass

from coldrun.tasks.judge.land_judgement import run_here
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.run.prepare import Evaluation
from coldrun.tasks.run.run_lifecycle import RunRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRequest:
    """Which commit to measure, and how. `label` is for people."""

    evaluation: Evaluation
    request: RunRequest
    commit: str
    label: str


def measure_point(ask: PointRequest) -> Report:
    """Check out, set up, ask, land and judge one point.

    Returns:
        The report of its run; of an interrupted run with what had finished.

    Raises:
        ColdrunError: The point cannot be checked out, set up or asked. What had been answered
            stays and can be resumed.
    """
    report = run_here(ask.evaluation, ask.request, ask.commit).report
    current_watch().results.pop(report.run_id, None)
    return report
