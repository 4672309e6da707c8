"""`coldrun init`: a configuration and an adapter that work as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from coldrun.cli.init import command
from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.check_config import check_config
from tests.evaluations import EvaluationLab, arm_of
from tests.holdouts import build_garden


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    build_garden(tmp_path / "garden")
    return tmp_path / "garden"


def init(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, [*arguments, "--scratch", str(tmp_path / "scratch")])
    return done.exit_code, done.output


@pytest.mark.parametrize("arm", ["command", "mcp", "http"])
def test_init_writes_an_evaluation_that_freezes_and_runs_as_it_is(
    tmp_path: Path, garden: Path, arm: str
) -> None:
    """The skeleton of the adapter finds files by their names, over the real protocol."""
    config = tmp_path / "evaluation" / "first.toml"
    code, output = init(tmp_path, str(config), "--repo", str(garden), "--arm", arm)
    assert code == 0, output
    check_config(load_config(config))
    lab = EvaluationLab(tmp_path, name="first")
    assert lab.freeze() == "frozen"
    report = lab.run().report
    assert (report.evidence, report.counts.infra) == ("executed", 0)
    assert arm_of(report, "mytool").measures["hit@1"].value == 1.0
    assert [gate.arm for gate in report.gates] == ["mytool"]


def test_init_never_overwrites(tmp_path: Path, garden: Path) -> None:
    """Neither the configuration nor the adapter; and then it writes neither."""
    config = tmp_path / "here" / "evaluation.toml"
    adapter = tmp_path / "here" / "adapters" / "mytool.py"
    adapter.parent.mkdir(parents=True)
    adapter.write_text("mine\n")
    code, output = init(tmp_path, str(config), "--repo", str(garden))
    assert code == 2
    assert "was left alone; nothing was written" in output
    assert adapter.read_text() == "mine\n"
    assert not config.exists()


def test_init_outside_a_repository_says_so(tmp_path: Path) -> None:
    """A folder without history has no tasks."""
    (tmp_path / "plain").mkdir()
    code, output = init(tmp_path, str(tmp_path / "x.toml"), "--repo", str(tmp_path / "plain"))
    assert code == 2
    assert str(tmp_path / "plain") in output
    assert not (tmp_path / "x.toml").exists()
