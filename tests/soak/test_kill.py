"""The long version of killing runs."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crashes import check_landed, kill_and_check, read_whole
from tests.evaluations import COLDRUN, EvaluationLab
from tests.run.test_crash import SLOW


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(5))
def test_ten_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    """Fifty kills in all, from before the first answer until after the landing."""
    lab = EvaluationLab(tmp_path).prepare(120, arm=SLOW)

    kill_and_check(lab, kills=10, seed=seed, most_seconds=1.2)


@pytest.mark.soak
@pytest.mark.prefect
@pytest.mark.timeout(1800)
def test_five_kills_through_the_command_line_lose_and_double_nothing(
    tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    """The whole program on a running server, killed from its start until its end."""
    lab = EvaluationLab(tmp_path).prepare(300, arm=SLOW)
    planned = {task.id for task in lab.load().frozen.tasks}
    draw = random.Random(5)
    run_id: str | None = None
    before: dict[str, float] = {}
    for number in range(5):
        killed = kill_command(lab, run_id, prefect_server, seconds=draw.uniform(0.2, 1.2))
        folder = lab.warehouse / "captures" / killed
        if (folder / "run.json").exists():
            now = read_whole(folder)
            assert {task: now.get(task) for task in before} == before, number
            run_id, before = killed, now
        else:
            check_landed(lab, killed, planned, before)
            run_id, before = None, {}
    if run_id is None:
        return
    done = lab.coldrun("run", lab.config, "--resume", run_id, env=prefect_server)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"executed 300 ({len(before)} of them before it was resumed)")
    check_landed(lab, run_id, planned, before)


def kill_command(
    lab: EvaluationLab, run_id: str | None, server: dict[str, str], *, seconds: float
) -> str:
    """Call `coldrun run`, kill -9 it so long after it began to ask, and give the run's id."""
    known = {path.parent for path in lab.warehouse.glob("captures/*/run.json")}
    files = {path for folder in known for path in folder.iterdir()}
    resume = ["--resume", run_id] if run_id else []
    with subprocess.Popen(
        [sys.executable, "-c", COLDRUN, "run", str(lab.config), *resume],
        env=lab.environment() | server,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        fresh: list[Path] = []
        while not fresh and process.poll() is None:
            time.sleep(0.01)
            fresh = [path for path in lab.warehouse.glob("captures/*/*.json") if path not in files]
        time.sleep(seconds)
        process.kill()
        process.wait()
    return run_id or fresh[0].parent.name
