"""A Prefect server that the tests of one process share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that make `coldrun` use it."""
    state = tmp_path_factory.mktemp("server")
    status = json.loads(call_server("start", state))
    try:
        yield {"PREFECT_API_URL": status["api_url"]}
    finally:
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
