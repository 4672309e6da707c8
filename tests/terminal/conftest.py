"""Evaluations whose arms wait for the test, so that what is shown meanwhile is seen for certain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.evaluations import CONFIG, EvaluationLab

pytest.register_assert_rewrite("tests.terminal.emulator")

from tests.terminal.emulator import Terminal, environment_of  # noqa: E402 - rewritten first

WAITING = """
asked = 0

def answer(query, plain=answer):
    global asked
    asked += 1
    while asked > 3 and not os.path.exists({gate!r}):
        time.sleep(0.02)
    return plain(query)
"""
TASKS = 24

Show = Callable[..., Terminal]


@dataclass(frozen=True, slots=True)
class GatedLab:
    """An evaluation of 24 tasks whose arm answers three questions, and the others on `open`."""

    lab: EvaluationLab

    @property
    def gate(self) -> Path:
        return self.lab.root / "gate"

    def open(self) -> None:
        """Let the arm answer."""
        self.gate.touch()

    def close(self) -> None:
        """Let it wait again."""
        self.gate.unlink()


@pytest.fixture
def gated(tmp_path: Path) -> GatedLab:
    """A frozen evaluation whose arm waits."""
    gated = GatedLab(EvaluationLab(tmp_path))
    gated.lab.prepare(
        TASKS,
        arm=WAITING.format(gate=str(gated.gate)),
        config=CONFIG.replace("[run]", '[run]\nsandbox = "none"'),
    )
    return gated


def _show_with(server: dict[str, str]) -> Show:
    def call(
        lab: Any,
        *arguments: str | Path,
        columns: int = 80,
        redirection: str = "",
        **variables: str,
    ) -> Terminal:
        return Terminal(
            *arguments,
            environment=environment_of(lab, server, **variables),
            columns=columns,
            redirection=redirection,
        )

    return call


@pytest.fixture
def show() -> Show:
    """Run a command in a terminal: `show(lab, "run", path, columns=80, NO_COLOR="1")`."""
    return _show_with({})


@pytest.fixture
def show_served(prefect_server: dict[str, str]) -> Show:
    """The same on the Prefect server of the session."""
    return _show_with(prefect_server)
