"""A Prefect server that hangs or dies in mid-run decides nothing: the run goes on without it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.evaluations import COLDRUN, EvaluationLab

SLOW = """
def answer(query, plain=answer):
    time.sleep(0.3)
    return plain(query)
"""


@pytest.mark.prefect
@pytest.mark.soak
@pytest.mark.parametrize("sign", [signal.SIGSTOP, signal.SIGKILL])
def test_run_goes_on_without_the_server_that_it_lost(tmp_path: Path, sign: signal.Signals) -> None:
    """Every answer is there once, the verdict is the exit code, and one line says what happened."""
    lab = EvaluationLab(tmp_path).prepare(60, arm=SLOW)
    started = lab.coldrun("server", "start", "--json")
    assert started.returncode == 0, started.stderr
    pid = json.loads(started.stdout)["pid"]
    try:
        with subprocess.Popen(
            [sys.executable, "-c", COLDRUN, "run", str(lab.config), "--json", "-"],
            env=lab.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            while len(list(lab.warehouse.glob("captures/*/" + "?" * 64 + ".json"))) < 8:
                assert run.poll() is None
                time.sleep(0.05)
            os.kill(pid, sign)
            stdout, stderr = run.communicate(timeout=200)
    finally:
        if sign == signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
        lab.coldrun("server", "stop")

    assert run.returncode == 0, stderr
    assert "orchestration lost at" in stderr
    assert "Traceback" not in stderr
    counts = json.loads(stdout)["counts"]
    assert (counts["executed"], counts["infra"]) == (60, 0)
    keys = lab.select("SELECT count(*) AS n, count(DISTINCT key) AS keys FROM captures")
    assert keys == [{"n": 60, "keys": 60}]
