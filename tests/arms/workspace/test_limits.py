"""What one session uses up is its own failure, with the limit named."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.lib.machine.bounded_log import BoundedLog
from coldrun.tasks.lib.machine.limits import Limits, _bases, make_group
from tests.sessions import Lab, ask

CONTROLLED = pytest.mark.skipif(len(_bases()) < 2, reason="no control group can be made here")


def replies_of(lab: Lab, body: str, **limits: int) -> list[Any]:
    """The first question breaks something, the second is an ordinary one."""
    lab.adapter(f"def answer(question):\n    {body}\n    return {{'items': ['src/a.py']}}\n")
    session = open_session(replace(lab.context(lab.arm()), limits=Limits(**limits)))
    try:
        return [ask(session, "break", name="q1"), ask(session, "go on", name="q2")]
    finally:
        session.close()
        groups = session.workspace.limits.folders.values()  # type: ignore[attr-defined]
        assert not [path for path in groups if path.exists()]


@CONTROLLED
@pytest.mark.parametrize(
    ("greed", "limit", "value"),
    [
        ("bytearray(10 << 30)", "memory_mb", 200),
        ("[os.fork() or time.sleep(9) for _ in range(200)]", "processes", 20),
    ],
)
def test_limit_that_is_broken_is_named_and_the_next_question_is_answered(
    lab: Lab, greed: str, limit: str, value: int
) -> None:
    """A ten-gigabyte allocation and two hundred processes end with their session's process."""
    body = f"question['query'] == 'break' and {greed}"
    first, second = replies_of(lab, body, **{limit: value})
    assert (first.status, second.status) == ("infra", "answered")
    assert f"it broke a limit: {limit} = {value}" in first.reason


def test_flood_of_the_log_is_cut_while_it_comes(tmp_path: Path) -> None:
    """The file never grows past its limit, and has what was said last."""
    log = BoundedLog(tmp_path, limit_bytes=4 << 20)
    script = "import os; [os.write(2, b'x' * (1 << 20)) for _ in range(200)]; os.write(2, b'end')"
    with log.inlet.open("ab") as inlet:
        flood = subprocess.Popen([sys.executable, "-c", script], stderr=inlet)
    sizes = []
    while flood.poll() is None:
        sizes.append(log.file.stat().st_size)
    assert max(sizes) <= 4 << 20
    assert (log.read() or "").endswith("xxxend")
    assert log.size() <= 4 << 20
    log.close()


def test_limits_without_a_control_group_are_those_of_ulimit(tmp_path: Path) -> None:
    """They are the shell's words before the program."""
    group = make_group(Limits(memory_mb=100, open_files=50, disk_mb=1))
    group.folders.clear()
    argv = group.wrap(["true"])
    assert "ulimit -d 102400" in argv[2]
    assert "ulimit -n 50" in argv[2]
    assert "ulimit -f 2048" in argv[2]
    assert argv[3:] == ["sh", "true"]
