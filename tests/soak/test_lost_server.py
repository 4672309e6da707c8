"""A Prefect server that hangs, dies, is locked or corrupted in mid-run decides nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.evaluations import COLDRUN, EvaluationLab

SLOW = """
def answer(query, plain=answer):
    time.sleep(0.3)
    return plain(query)
"""
ANSWERS = 60


@contextmanager
def stopped(pid: int, _: Path) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


@contextmanager
def killed(pid: int, _: Path) -> Iterator[None]:
    os.kill(pid, signal.SIGKILL)
    yield


@contextmanager
def locked(_: int, database: Path) -> Iterator[None]:
    connection = sqlite3.connect(database, timeout=60, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    yield
    connection.close()


@contextmanager
def corrupted(_: int, database: Path) -> Iterator[None]:
    draw = random.Random(3)
    for path in (database, database.with_name(database.name + "-wal")):
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            for _ in range(200):
                file.seek(draw.randrange(0, size - 4096))
                file.write(draw.randbytes(4096))
    yield


@pytest.mark.prefect
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("harm", [stopped, killed, locked, corrupted])
def test_run_goes_on_whatever_befalls_the_server(
    tmp_path: Path, harm: Callable[[int, Path], object]
) -> None:
    """Every answer is there once, the verdict is the exit code, and nothing is a traceback."""
    lab = EvaluationLab(tmp_path).prepare(ANSWERS, arm=SLOW)
    state = {"COLDRUN_STATE": str(tmp_path / "state")}
    started = lab.coldrun("server", "start", "--json", env=state)
    assert started.returncode == 0, started.stderr
    pid = json.loads(started.stdout)["pid"]
    moment = random.Random(harm.__name__).randrange(2, ANSWERS // 2)
    try:
        with subprocess.Popen(
            [sys.executable, "-c", COLDRUN, "run", str(lab.config), "--json", "-"],
            env=lab.environment() | state,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            while len(list(lab.warehouse.glob("captures/*/" + "?" * 64 + ".json"))) < moment:
                assert run.poll() is None
                time.sleep(0.05)
            began = time.monotonic()
            with harm(pid, tmp_path / "state" / "server" / "prefect.db"):  # type: ignore[attr-defined]
                stdout, stderr = run.communicate(timeout=300)
            took = time.monotonic() - began
    finally:
        lab.coldrun("server", "stop", env=state)

    sys.stdout.write(f"{harm.__name__} after {moment} answers: ended {took:.0f} s later\n")
    assert run.returncode == 0, stderr
    assert "Traceback" not in stderr
    if harm in (stopped, killed):
        assert "orchestration lost at" in stderr
    counts = json.loads(stdout)["counts"]
    assert (counts["executed"], counts["infra"]) == (ANSWERS, 0)
    keys = lab.select("SELECT count(*) AS n, count(DISTINCT key) AS keys FROM captures")
    assert keys == [{"n": ANSWERS, "keys": ANSWERS}]
