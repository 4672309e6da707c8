"""The flows of a history: `backfill` and `decompose`, each point a run of the flow `evaluate`.

Points run one after the other: a point that shares the machine with another is not comparable.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

from prefect import flow

from coldrun.flows.evaluate import evaluate, run_name
from coldrun.tasks.history.campaign import PointRequest
from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.history_model import History
from coldrun.tasks.history.history_requests import (
    HistoryRequest,
    request_backfill,
    request_decomposition,
)
from coldrun.tasks.judge.land_judgement import report_of
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.served import served
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.run.prepare import load_served

HISTORY = "history"
"""What the watch calls the report of the last history."""


@flow(name="backfill", flow_run_name=run_name, persist_result=False)
def backfill(  # noqa: PLR0913 - what a deployment can set
    evaluation: str,
    commits: str = "NEW",
    *,
    arm: str | None = None,
    mode: Literal["cold", "reuse"] = "reuse",
    every: int = 1,
    at_most: int | None = None,
    since: dt.date | None = None,
    is_first_parent: bool = True,
) -> str:
    """Evaluate many commits of the product; parameters as of `coldrun backfill`.

    Returns:
        The id of the history; empty when nothing is new.
    """
    request = request_backfill(
        load_served(evaluation),
        commits,
        warehouse=served().warehouse,
        every=every,
        at_most=at_most,
        since=since,
        is_first_parent=is_first_parent,
        arm=arm,
        mode=mode,
    )
    return "" if request is None else _conduct(request)


@flow(name="decompose", flow_run_name=run_name, persist_result=False)
def decompose(  # noqa: PLR0913 - what a deployment can set
    evaluation: str,
    from_revision: str,
    to_revision: str,
    *,
    arm: str | None = None,
    mode: Literal["cold", "reuse"] = "cold",
    is_whole: bool = False,
    trials: int | None = None,
    known: dict[str, str] | None = None,
) -> str:
    """Attribute a change to the commits between two points; parameters as of `coldrun decompose`.

    Args:
        known: Commits that were executed for this very history, with the ids of their runs.

    Returns:
        The id of the history.
    """
    request = request_decomposition(
        load_served(evaluation),
        from_revision,
        to_revision,
        warehouse=served().warehouse,
        arm=arm,
        is_whole=is_whole,
        mode=mode,
        trials=trials,
        known=known,
    )
    return _conduct(request)


def run_history(request: HistoryRequest) -> History:
    """Conduct what a request says as a flow run, or a subflow run where one is under way."""
    options: dict[str, Any] = {"arm": request.arm, "mode": request.mode}
    name = served().name_of(request.evaluation.config_path)
    names = [commit.commit for commit in request.commits]
    if request.kind == "backfill":
        backfill(name, ",".join(names), **options)
    else:
        decompose(
            name,
            names[0],
            names[-1],
            is_whole=request.is_whole,
            trials=request.trials,
            known=dict(request.known),
            **options,
        )
    history: History = current_watch().results[HISTORY]
    return history


def _conduct(request: HistoryRequest) -> str:
    history = conduct_history(request, _measure_as_run)
    current_watch().results[HISTORY] = history
    return history.run_id


def _measure_as_run(ask: PointRequest) -> Report:
    asked = ask.request
    run_id = evaluate.with_options(flow_run_name=ask.label.replace("{", "(").replace("}", ")"))(
        served().name_of(ask.evaluation.config_path),
        ask.commit,
        asked.mode,
        resume=asked.resume,
        run_id=asked.run_id,
        trials=asked.trials,
        always_executed=sorted(asked.always_executed),
        only_primary=asked.only_primary,
    )
    return report_of(asked.warehouse, run_id).report
