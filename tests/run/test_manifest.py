"""Runs of earlier versions keep their own arms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coldrun.tasks.run.manifest import read_manifest
from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab

MINED = """\
[panel]
kind = "commit-files"
repo = "../garden"
base = "v0"
drop = []
"""


@pytest.mark.parametrize("asked", [("bm25", "history", "grep"), ("bm25", "grep"), ("grep",)])
def test_manifest_without_declared_arms_has_those_that_were_asked(
    tmp_path: Path, new_repository: Callable[..., RepositoryBuilder], asked: tuple[str, ...]
) -> None:
    """Arms that came to be built in later were not part of an older run."""
    garden = new_repository("garden")
    garden.git("tag", "v0", garden.commit("start", {"a.py": "1", "b.py": "1"}))
    garden.commit("mend the header of a", {"a.py": "2"})
    lab = EvaluationLab(tmp_path)
    lab.write(MINED)
    lab.freeze()
    run_id = lab.run().report.run_id
    values = json.loads(lab.select("SELECT manifest FROM runs")[0]["manifest"])
    assert not values["config"].get("arm")
    for name in ("trials", "planned"):
        values[name] = {arm: values[name][arm] for arm in asked}
    manifest, _ = read_manifest(run_id, json.dumps(values))
    assert tuple(arm.name for arm in manifest.config.arms) == asked
