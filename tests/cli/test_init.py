"""`coldrun init`: a configuration and an adapter that work as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.check_config import check_config
from tests.evaluations import EvaluationLab, arm_of
from tests.holdouts import build_garden


@pytest.fixture
def lab(tmp_path: Path) -> EvaluationLab:
    """An evaluation that is not written yet, and a garden beside it."""
    build_garden(tmp_path / "garden")
    return EvaluationLab(tmp_path)


@pytest.mark.parametrize("arm", ["command", "mcp", "http"])
def test_init_writes_an_evaluation_that_freezes_and_runs_as_it_is(
    lab: EvaluationLab, arm: str
) -> None:
    """The skeleton of the adapter finds files by their names, over the real protocol."""
    done = lab.invoke("init", lab.config, "--repo", "garden", "--arm", arm)
    assert done.returncode == 0, done.stderr
    check_config(load_config(lab.config))
    assert lab.freeze() == "frozen"
    report = lab.run().report
    assert (report.evidence, report.counts.infra) == ("executed", 0)
    assert arm_of(report, "mytool").measures["hit@1"].value == 1.0
    assert [gate.arm for gate in report.gates] == ["mytool"]


def test_init_never_overwrites(lab: EvaluationLab) -> None:
    """Neither the configuration nor the adapter; and then it writes neither."""
    adapter = lab.config.parent / "adapters" / "mytool.py"
    adapter.parent.mkdir()
    adapter.write_text("mine\n")
    done = lab.invoke("init", lab.config, "--repo", lab.root / "garden")
    assert done.returncode == 2
    assert "was left alone; nothing was written" in done.stderr
    assert adapter.read_text() == "mine\n"
    assert not lab.config.exists()


def test_init_outside_a_repository_says_so(lab: EvaluationLab) -> None:
    """A folder without history has no tasks."""
    plain = lab.root / "plain"
    plain.mkdir()
    done = lab.invoke("init", lab.config, "--repo", plain)
    assert done.returncode == 2
    assert str(plain) in done.stderr
    assert not lab.config.exists()
