"""The mining stage."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.records import MinedPanel
from coldrun.tasks.mine.mine_panel import mine_panel


@task(name="mine", task_run_name="mine", cache_policy=NO_CACHE, persist_result=False)
def mine_stage(panel: PanelConfig, config_dir: Path, scratch: Path) -> MinedPanel:
    """Turn history into tasks and counted drops."""
    return mine_panel(panel, config_dir=config_dir, scratch=scratch)
