"""Ctrl-C: gone within five seconds, what finished is landed, and the way on is printed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.evaluations import COLDRUN, EvaluationLab

pytestmark = pytest.mark.prefect

SLOW_AFTER_FIVE = """
asked = 0

def answer(query, plain=answer):
    global asked
    asked += 1
    if asked > 5 and not os.path.exists({flag!r}):
        time.sleep(60)
    return plain(query)
"""
SLOW_START = """
if not os.path.exists({flag!r}):
    time.sleep(60)
"""


@contextmanager
def running(lab: EvaluationLab, server: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, killed at the end if it is still there."""
    with subprocess.Popen(
        [sys.executable, "-c", COLDRUN, "run", str(lab.config)],
        env=lab.environment() | server,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(lab: EvaluationLab, pattern: str, count: int) -> Path:
    """Wait until so many files of a run are there, and give the run's folder."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = list(lab.warehouse.glob(f"captures/*/{pattern}"))
        if len(found) >= count:
            return found[0].parent
        time.sleep(0.05)
    raise AssertionError(f"{pattern} did not come")


def interrupt(process: subprocess.Popen[str]) -> tuple[float, str, str]:
    """Send SIGINT; give the seconds until the end, stdout and stderr."""
    children = psutil.Process(process.pid).children(recursive=True)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    seconds = time.monotonic() - began
    _, alive = psutil.wait_procs(children, timeout=2)
    assert alive == [], "the arm's processes live on"
    return seconds, stdout, stderr


@pytest.mark.soak  # terminal/test_interrupt.py has the same at a terminal
def test_interrupted_run_lands_what_finished_and_resumes_with_the_printed_command(
    tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    """Five answers are there when the sixth hangs; --resume asks the other seven alone."""
    flag = tmp_path / "fast"
    lab = EvaluationLab(tmp_path).prepare(arm=SLOW_AFTER_FIVE.format(flag=str(flag)))
    with running(lab, prefect_server) as process:
        run_id = wait_for(lab, "?" * 64 + ".json", 5).name
        seconds, stdout, stderr = interrupt(process)

    assert process.returncode == 130
    assert seconds < 5
    assert "Traceback" not in stderr
    assert stdout.startswith("executed 5 · replayed 0")
    assert "\nDID NOT RUN: " in stdout
    assert lab.select("SELECT status, executed, planned FROM runs") == [
        {"status": "interrupted", "executed": 5, "planned": 12}
    ]
    printed = re.search(r"continue with:\s+coldrun (run .+ --resume \S+)", stderr)
    assert printed is not None, stderr
    assert run_id in printed[1]

    flag.touch()
    done = lab.coldrun(*printed[1].split(), env=prefect_server)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("executed 12 (5 of them before it was resumed) · replayed 0")
    assert lab.select("SELECT count(*) AS n, count(DISTINCT key) AS keys FROM captures") == [
        {"n": 12, "keys": 12}
    ]


@pytest.mark.soak
def test_run_interrupted_while_its_arm_starts_is_gone_in_time(
    tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    """A session that is still coming up holds nobody up, and leaves no process behind."""
    flag = tmp_path / "fast"
    lab = EvaluationLab(tmp_path).prepare(arm=SLOW_START.format(flag=str(flag)))
    with running(lab, prefect_server) as process:
        run_id = wait_for(lab, "run.json", 1).name
        wait_for_arm(process)
        seconds, _, stderr = interrupt(process)

    assert process.returncode == 130
    assert seconds < 5
    assert "Traceback" not in stderr
    assert f"--resume {run_id}" in stderr
    flag.touch()
    assert lab.run("resume", resume=run_id).report.counts.executed == 12


def wait_for_arm(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children(recursive=True):
            if any("arm.py" in part for part in child.cmdline()):
                return
        time.sleep(0.05)
    raise AssertionError("the arm did not start")
