"""The freezing stage."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.config import Config
from coldrun.tasks.freeze.freeze_panel import FrozenResult, freeze_panel
from coldrun.tasks.lib.records import MinedPanel


@task(name="freeze", task_run_name="freeze", cache_policy=NO_CACHE, persist_result=False)
def freeze_stage(config: Config, mined: MinedPanel) -> FrozenResult:
    """Split, describe, sample and hash."""
    return freeze_panel(config, mined)
