"""SIGTERM and SIGHUP end any command as Ctrl-C does: exit 130, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.evaluations import COLDRUN, EvaluationLab

PANEL = """\
[panel]
kind = "commit-files"
repo = "https://example.invalid/x.git"
base = "main"
"""


SLOW_GIT = """\
#!/bin/sh
case "$*" in *clone*) ;; *) exec {git} "$@" ;; esac
sleep 60 &
echo $$ $! > {pid}
wait
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["freeze", "mine"])
def test_a_signal_while_a_repository_is_cloned(
    tmp_path: Path, command: str, number: signal.Signals
) -> None:
    """Git hangs here as it does on a slow network."""
    lab = EvaluationLab(tmp_path)
    lab.write(PANEL)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text(
        SLOW_GIT.format(git=shutil.which("git"), pid=tmp_path / "git.pid")
    )
    (programs / "git").chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", COLDRUN, command, str(lab.config)],
        env=lab.environment() | {"PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pid = tmp_path / "git.pid"
    while not pid.exists() or len(pid.read_text().split()) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "coldrun: interrupted"
    assert list((lab.scratch / "clones").iterdir()) == []
    left = [int(word) for word in pid.read_text().split()]
    until = time.monotonic() + 10  # a killed process takes a moment to go
    while left and time.monotonic() < until:
        left = [each for each in left if _is_running(each)]
    assert left == []


def _is_running(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != "zombie"
    return False
