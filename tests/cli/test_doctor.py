"""`coldrun doctor`: what is wrong with a machine, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from coldrun.cli.doctor import command
from tests.evaluations import EvaluationLab


@pytest.fixture(autouse=True)
def _no_given_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


def call(warehouse: Path, scratch: Path) -> tuple[int, dict[str, dict[str, str]]]:
    folders = ["--warehouse", str(warehouse), "--scratch", str(scratch)]
    done = CliRunner().invoke(command, ["--json", "-", *folders])
    values = json.loads(done.stdout)
    return done.exit_code, {check["name"]: check for check in values["checks"]}


def test_doctor_on_a_healthy_machine_is_fine_and_makes_nothing(tmp_path: Path) -> None:
    """Every check is there; folders that are not there yet are not made for the check."""
    code, checks = call(tmp_path / "data", tmp_path / "scratch")
    assert code == 0
    assert {"python", "git", "uv", "user", "warehouse folder", "scratch room", "server"} <= set(
        checks
    )
    assert checks["git"]["found"].startswith("git version")
    assert "in their own process" in checks["server"]["found"]
    assert list(tmp_path.iterdir()) == []


def test_doctor_scratch_inside_a_repository_has_failed(tmp_path: Path) -> None:
    """A corpus there would let a tool read later commits."""
    (tmp_path / ".git").mkdir()
    code, checks = call(tmp_path / "data", tmp_path / "scratch")
    assert code == 2
    assert checks["isolation"]["status"] == "failed"
    assert "--scratch" in checks["isolation"]["next_step"]


def test_doctor_names_what_dead_programs_left(tmp_path: Path) -> None:
    """Orphaned sessions and unfinished runs, each with the command that ends it."""
    lab = EvaluationLab(tmp_path).prepare()
    lab.start().abandon()
    (lab.scratch / "sessions" / "run" / "dead").mkdir(parents=True)
    code, checks = call(lab.warehouse, lab.scratch)
    assert code == 0
    assert checks["sessions"]["next_step"].startswith("`coldrun prune`")
    assert checks["runs"]["found"].startswith("1 unfinished")


def test_doctor_given_server_that_does_not_answer_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every run would stop there, so it is a failure and not a remark."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    code, checks = call(tmp_path / "data", tmp_path / "scratch")
    assert code == 2
    assert "unset PREFECT_API_URL" in checks["server"]["next_step"]
