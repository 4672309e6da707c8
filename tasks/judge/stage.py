"""The last stage of a run: judge what landed."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.judge.land_judgement import judge_by_id


@task(name="judge", cache_policy=NO_CACHE, persist_result=False)
def judge_stage(warehouse: str, run_id: str, scratch: str) -> str:
    """Judge a landed run; gives its verdict."""
    return judge_by_id(Path(warehouse), run_id, Path(scratch))
