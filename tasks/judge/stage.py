"""The last stage of a run: judge what landed."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.judge.land_judgement import judge_by_id
from coldrun.tasks.lib.served import served


@task(name="judge", cache_policy=NO_CACHE, persist_result=False)
def judge_stage(run_id: str) -> str:
    """Judge a landed run; gives its verdict."""
    return judge_by_id(served().warehouse, run_id, served().scratch)
