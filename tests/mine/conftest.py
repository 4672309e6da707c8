"""Mining made short for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import MinedPanel
from coldrun.tasks.mine.commit_files import mine_commit_files


@pytest.fixture(scope="session")
def mine() -> Callable[..., MinedPanel]:
    """Mine the repository at a builder's path: `mine(made, base=commit, unit="merge")`."""

    def run(made: Any, **panel: Any) -> MinedPanel:
        panel.setdefault("exclude_gold", ())
        panel.setdefault("drop", ())
        path = getattr(made, "path", made)
        spec = PanelConfig(kind="commit-files", repo=str(path), **panel)
        return mine_commit_files(Repository.open(path), spec)

    return run


@pytest.fixture(scope="session")
def gold_by_query() -> Callable[[MinedPanel], dict[str, list[str]]]:
    """The gold items of each task of a panel by its query."""

    def run(panel: MinedPanel) -> dict[str, list[str]]:
        return {task.query: [gold.item for gold in task.gold] for task in panel.tasks}

    return run
