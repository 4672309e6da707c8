"""Nights on a real Prefect server: held back, killed, marked as crashed, taken up again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from coldrun.flows.prefect_server import state_folder, stop_server
from coldrun.warehouse.reader import connect, select_rows
from tests.history.small import SmallHistory

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("coldrun", "cli", "flows", "tasks", "warehouse")
COLDRUN = "from coldrun.cli.main import main; main(prog_name='coldrun')"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallHistory]:
    """A product with one commit; whatever server a test started is stopped."""
    monkeypatch.setenv("COLDRUN_STATE", str(tmp_path / "state"))
    small = SmallHistory(tmp_path / "lab")
    small.add("start", range(8))
    small.freeze()
    yield small
    stop_server()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the source: a night that is continued must find the code that began it."""
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "data")
        shutil.copytree(ROOT / name, tmp_path / "source" / name, ignore=ignored, symlinks=True)
    return tmp_path / "source"


@pytest.mark.prefect
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_killed_night_is_marked_and_the_next_one_resumes_it(
    served: SmallHistory, source: Path
) -> None:
    """A night fires, a second is held back, a kill is noticed in two minutes, the next resumes."""
    seconds = served.root / "seconds.txt"
    seconds.write_text("10")
    with _serving(served, source) as server:
        running = _wait(served, lambda runs: _with_state(runs, "Running"), limit=240)
        _wait(served, lambda runs: _with_state(runs, "Cancelled"), limit=180)
        held_back = _with_state(_flow_runs(served), "Cancelled")[0]
        assert "concurrency limit" in held_back["state"]["message"]
        running = state_folder().read()
        _kill_all(server, but=None if running is None else running.pid)
        killed = time.monotonic()
    dead = running[0]["id"]
    seconds.write_text("0")
    with _serving(served, source):
        _wait(
            served,
            lambda runs: [run for run in _with_state(runs, "Crashed") if run["id"] == dead],
            limit=120 - (time.monotonic() - killed),
        )
        _wait(served, lambda runs: _with_state(runs, "Completed"), limit=180)
    rows = select_rows(connect(served.warehouse), "SELECT executed, resumed, infra FROM runs")
    assert [(row["executed"], row["infra"]) for row in rows] == [(48, 0)]
    assert rows[0]["resumed"] > 0
    assert list((served.warehouse / "reports" / "nightly").glob("*.md"))


@contextmanager
def _serving(small: SmallHistory, source: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`coldrun nightly serve` every minute, ended by SIGTERM."""
    environment = {name: value for name, value in os.environ.items() if "PREFECT" not in name}
    environment |= {
        "COLDRUN_WAREHOUSE": str(small.warehouse),
        "COLDRUN_SCRATCH": str(small.scratch),
        "PYTHONPATH": str(source),
    }
    command = [sys.executable, "-c", COLDRUN, "nightly", "serve", str(small.config)]
    with (small.root / "serve.log").open("ab") as log:
        server = subprocess.Popen(
            [*command, "--cron", "* * * * *"],
            cwd=source,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _kill_all(server: subprocess.Popen[bytes], *, but: int | None) -> None:
    """kill -9 for the worker and its flow runs, with the Prefect server left alone."""
    for process in [*psutil.Process(server.pid).children(recursive=True), server]:
        if process.pid != but:
            process.kill()
    server.wait()


def _flow_runs(small: SmallHistory) -> list[dict[str, Any]]:
    running = state_folder().read()
    if running is None:
        return []
    name, _, password = running.auth.partition(":")
    wanted = {"sort": "EXPECTED_START_TIME_ASC", "limit": 50}
    with httpx.Client(auth=(name, password), timeout=10, trust_env=False) as client:
        try:
            asked = client.get(f"{running.api_url}/csrf-token", params={"client": "test"})
            token = asked.raise_for_status().json()["token"]
            headers = {"Prefect-Csrf-Client": "test", "Prefect-Csrf-Token": token}
            url = f"{running.api_url}/flow_runs/filter"
            answer = client.post(url, json=wanted, headers=headers)
            return list(answer.raise_for_status().json())
        except httpx.HTTPError:
            return []


def _with_state(runs: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [run for run in runs if run["state_name"] == name]


def _wait(
    small: SmallHistory,
    find: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
    *,
    limit: float,
) -> list[dict[str, Any]]:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        found = find(_flow_runs(small))
        if found:
            return found
        time.sleep(2)
    states = [(run["name"], run["state_name"]) for run in _flow_runs(small)[:8]]
    log = (small.root / "serve.log").read_text()[-2000:]
    return pytest.fail(f"not within {limit:.0f} s: {states}\n{log}")
