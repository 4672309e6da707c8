"""A Prefect server that the tests share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coldrun.tasks.lib.machine.file_locks import hold_lock


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that make `coldrun` use it; the workers of a session share one server."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    folder = tmp_path_factory.getbasetemp()
    folder = folder if worker is None else folder.parent
    users, state = folder / "server-users", folder / "server-state"
    mine = users / (worker or "alone")
    with hold_lock(folder / "server.lock"):
        users.mkdir(exist_ok=True)
        mine.touch()
        status = json.loads(call_server("start", state))
        auth = json.loads((state / "server.json").read_text())["auth"]
    try:
        yield {"PREFECT_API_URL": status["api_url"], "PREFECT_API_AUTH_STRING": auth}
    finally:
        with hold_lock(folder / "server.lock"):
            mine.unlink()
            if not any(users.iterdir()):
                call_server("stop", state)


def call_server(action: str, state: Path) -> str:
    """Call `coldrun server` in a process of its own and return what it printed."""
    from tests.evaluations import COLDRUN  # imports much that other tests do not need

    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    done = subprocess.run(
        [sys.executable, "-c", COLDRUN, "server", action, "--json"],
        env=kept | {"COLDRUN_STATE": str(state)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
