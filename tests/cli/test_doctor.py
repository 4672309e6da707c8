"""`coldrun doctor`: what is wrong with a machine, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.evaluations import EvaluationLab


@pytest.fixture
def lab(tmp_path: Path) -> EvaluationLab:
    return EvaluationLab(tmp_path)


def call(lab: EvaluationLab, **env: str) -> tuple[int, dict[str, dict[str, str]]]:
    done = lab.invoke("doctor", "--json", "-", env=env)
    values = json.loads(done.stdout)
    return done.returncode, {check["name"]: check for check in values["checks"]}


def test_doctor_on_a_healthy_machine_is_fine_and_makes_nothing(lab: EvaluationLab) -> None:
    """Every check is there; folders that are not there yet are not made for the check."""
    code, checks = call(lab)
    assert code == 0
    expected = {"python", "git", "uv", "user", "warehouse folder", "scratch room", "server"}
    assert expected <= set(checks)
    assert checks["git"]["found"].startswith("git version")
    assert "in their own process" in checks["server"]["found"]
    assert list(lab.root.iterdir()) == [lab.config.parent]


def test_doctor_scratch_inside_a_repository_has_failed(lab: EvaluationLab) -> None:
    """A corpus there would let a tool read later commits."""
    (lab.root / ".git").mkdir()
    code, checks = call(lab)
    assert code == 2
    assert checks["isolation"]["status"] == "failed"
    assert "--scratch" in checks["isolation"]["next_step"]


def test_doctor_names_what_dead_programs_left(lab: EvaluationLab) -> None:
    """Orphaned sessions and unfinished runs, each with the command that ends it."""
    lab.prepare()
    lab.start().abandon()
    (lab.scratch / "sessions" / "run" / "dead").mkdir(parents=True)
    code, checks = call(lab)
    assert code == 0
    assert checks["sessions"]["next_step"].startswith("`coldrun prune`")
    assert checks["runs"]["found"].startswith("1 unfinished")


def test_doctor_given_server_that_does_not_answer_has_failed(lab: EvaluationLab) -> None:
    """Every run would stop there, so it is a failure and not a remark."""
    code, checks = call(lab, PREFECT_API_URL="http://127.0.0.1:9/api")
    assert code == 2
    assert "unset PREFECT_API_URL" in checks["server"]["next_step"]
