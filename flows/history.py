"""The flow of a history: one stage per point, one after the other.

A point is one Prefect task run and no sub-flow, which would cost 0.3 s more for each; its shards
are threads within the stage. Points run one after the other, because a point that shares the
machine with another would not be comparable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from prefect import flow

from coldrun.flows.evaluate import Control, unseen
from coldrun.tasks.history.campaign import PointEvent
from coldrun.tasks.history.history_lifecycle import HistoryRequest, conduct_history
from coldrun.tasks.history.history_model import History
from coldrun.tasks.history.measure_point import PointRequest
from coldrun.tasks.history.stage import point_stage
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.run.execute import Progress


def run_history(
    request: HistoryRequest,
    *,
    control: Control,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_event: Callable[[PointEvent], None] = lambda _: None,
) -> History:
    """Conduct a history as a Prefect flow.

    Raises:
        ColdrunError: What would fail at every point; points that were measured stay.
    """
    kind, name = request.kind, request.evaluation.frozen.name

    @flow(
        name=kind,
        flow_run_name=f"{kind} {name}",
        persist_result=False,
        validate_parameters=False,
    )
    def history_flow(config: str, panel_digest: str, commits: int, arm: str) -> History:
        del config, panel_digest, commits, arm
        control.landed = conduct_within_flow(
            request, control=control, on_progress=on_progress, on_event=on_event
        )
        return cast("History", control.landed)

    return history_flow(
        str(request.evaluation.config_path),
        request.evaluation.frozen.digest,
        len(request.commits),
        request.arm,
    )


def conduct_within_flow(
    request: HistoryRequest,
    *,
    control: Control,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_event: Callable[[PointEvent], None] = lambda _: None,
) -> History:
    """Conduct a history in a flow run that is already there, a stage per point."""

    def measure(ask: PointRequest) -> Report:
        control.on_phase("checking out")
        return point_stage(unseen(ask), label=ask.label)

    hooks = replace(
        request.hooks,
        measure=measure,
        on_start=control.begin,
        on_progress=on_progress,
        on_event=on_event,
        is_stopping=lambda: control.is_stopping,
    )
    return conduct_history(replace(request, hooks=hooks))
