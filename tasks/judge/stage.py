"""The last stage of a run: land and analyse."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.judge.build_report import BuiltReport
from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.run.run_lifecycle import StartedRun


@task(
    name="land and analyse",
    task_run_name="land and analyse",
    cache_policy=NO_CACHE,
    persist_result=False,
)
def land_stage(started: StartedRun) -> BuiltReport:
    """Land the answers and judge them."""
    return finish_run(started)
