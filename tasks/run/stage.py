"""The stages of a run: check out the point, plan, ask in shards."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.lib.records import Point
from coldrun.tasks.run.execute import Run, Shard, execute_shard
from coldrun.tasks.run.prepare import Evaluation, prepare_evaluation_point
from coldrun.tasks.run.run_lifecycle import RunRequest, StartedRun, start_run


@task(name="check out", task_run_name="check out", cache_policy=NO_CACHE, persist_result=False)
def check_out_stage(evaluation: Evaluation, revision: str | None) -> Point | None:
    """Check out and set up the product."""
    return prepare_evaluation_point(evaluation, revision)


@task(name="plan", task_run_name="plan", cache_policy=NO_CACHE, persist_result=False)
def plan_stage(evaluation: Evaluation, request: RunRequest, point: Point | None) -> StartedRun:
    """Start the run, or take up a dead one."""
    return start_run(evaluation, request, point=point)


@task(name="ask", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
def ask_stage(run: Run, shard: Shard, label: str) -> int:
    """Ask one shard's questions."""
    del label
    return execute_shard(run, shard)
