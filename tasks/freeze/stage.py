"""The freezing stage."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.freeze.write_panel import freeze_mined
from coldrun.tasks.lib.served import served
from coldrun.tasks.mine.mine_panel import find_mined


@task(name="freeze", cache_policy=NO_CACHE, persist_result=False)
def freeze_stage(evaluation: str, mined: str) -> str:
    """Split, describe, sample, hash and write a mined panel; gives the panel's digest."""
    return freeze_mined(served().path_of(evaluation), find_mined(mined, served().scratch))
