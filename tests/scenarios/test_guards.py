"""Each guard has a test, and each of these tests fails when its guard is taken out.

The source is copied, one guard is removed from the copy, and the guard's own test runs on it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.evaluations import ROOT

pytestmark = pytest.mark.soak


class Guard(NamedTuple):
    """A guard: where it stands, what takes it out, the test that must notice, and how it does."""

    file: str
    present: str
    removed: str
    test: str
    notices: str


GUARDS = {
    "cold default": Guard(
        file="tasks/run/run_lifecycle.py",
        present='if request.mode == "reuse":',
        removed='if request.mode in ("cold", "reuse"):',
        test="tests/run/test_conduct.py::test_run_twice_executes_twice",
        notices="assert 15 == 24",
    ),
    "lock: bytes": Guard(
        file="tasks/freeze/lock.py",
        present='check_digest(files, expected=lock["panel"]["digest"], data=data)',
        removed="pass",
        test="tests/freeze/test_lock.py::test_read_frozen_panel_of_other_bytes_names_both_hashes",
        notices="DID NOT RAISE",
    ),
    "lock: settings": Guard(
        file="tasks/freeze/lock.py",
        present='changed = changed_settings(lock["settings"], locked_settings(config))',
        removed="changed = ()",
        test="tests/freeze/test_lock.py::"
        "test_read_frozen_panel_with_changed_settings_names_them[bar]",
        notices="DID NOT RAISE",
    ),
    "null gate": Guard(
        file="tasks/judge/gates.py",
        present="if worst.difference <= 0:",
        removed="if worst.difference is None:",
        test="tests/scenarios/test_null_baseline.py::"
        "test_null_baseline_of_largest_first_measures_nothing",
        notices="== ('measured_nothing",
    ),
    "nulls cannot be left out": Guard(
        file="tasks/stats/nulls.py",
        present="constant_answer(tasks, primary, k=k))",
        removed="())",
        test="tests/scenarios/test_null_baseline.py::"
        "test_null_baseline_of_largest_first_measures_nothing",
        notices="== (19, 1.0)",
    ),
    "evidence: executed": Guard(
        file="tasks/judge/build_report.py",
        present='"executed": sum(capture.evidence == "executed" for capture in captures),',
        removed='"executed": len(captures),',
        test="tests/run/test_conduct.py::test_reuse_of_all_answers_is_a_replay_and_exits_4",
        notices="== (3, 9)",
    ),
    "evidence: planned": Guard(
        file="tasks/judge/evidence.py",
        present="if answered < facts.planned:",
        removed="if answered < 0:",
        test="tests/run/test_conduct.py::test_stopped_run_did_not_run_and_exits_4",
        notices="did_not_run",
    ),
    "evidence: seconds": Guard(
        file="tasks/judge/evidence.py",
        present="if mean is not None and mean < minimum:",
        removed="if mean is None:",
        test="tests/run/test_conduct.py::test_run_that_is_too_fast_did_not_run",
        notices="AssertionError: assert ('measured'",
    ),
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source and of the tests that are run on it."""
    root = tmp_path_factory.mktemp("pristine")
    ignored = shutil.ignore_patterns("__pycache__", "data", "vector_cases")
    for folder in ("coldrun", "cli", "flows", "tasks", "warehouse", "tests"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored, symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def run_tests(root: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests on the code below `root` and on no other."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *tests, "-n", "0", "-p", "no:cacheprovider"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_guards_tests_pass_on_the_whole_source(pristine: Path) -> None:
    """The copy alone changes nothing: what fails below fails for want of a guard."""
    tests = dict.fromkeys(guard.test for guard in GUARDS.values())

    done = run_tests(pristine, *tests)

    assert done.returncode == 0, done.stdout
    assert f"{len(tests)} passed" in done.stdout


@pytest.mark.parametrize("name", sorted(GUARDS))
def test_guard_that_is_taken_out_fails_its_test(name: str, pristine: Path, tmp_path: Path) -> None:
    """One textual change removes the guard, and its test fails for that reason."""
    guard = GUARDS[name]
    root = tmp_path / "mutant"
    shutil.copytree(pristine, root, copy_function=os.link, symlinks=True)
    path = root / guard.file
    text = path.read_text(encoding="utf-8")
    assert text.count(guard.present) == 1, f"{guard.present!r} is not there exactly once"
    path.unlink()  # the other copy has the same file
    path.write_text(text.replace(guard.present, guard.removed), encoding="utf-8")

    done = run_tests(root, guard.test)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    assert guard.notices in done.stdout, done.stdout
