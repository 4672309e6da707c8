"""The stages of a history: one point, measured whole."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.history.measure_point import PointRequest, measure_point
from coldrun.tasks.judge.report_model import Report


@task(name="point", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def point_stage(ask: PointRequest, label: str) -> Report:
    """Check out, ask, land and judge one point."""
    del label
    return measure_point(ask)
