"""Killing a run at any moment, and looking at what it left."""

from __future__ import annotations

import datetime as dt
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coldrun.tasks.run.capture import CaptureStore
from tests.evaluations import EvaluationLab

KILLER = """
import os, signal, sys, time
from pathlib import Path
from tests.evaluations import EvaluationLab
from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.run.run_lifecycle import execute_locally

lab = EvaluationLab(Path(sys.argv[1]))

def work(resume, pipe):
    started = lab.start("resume" if resume else "cold", resume=resume)
    os.write(pipe, started.run_id.encode())
    os.close(pipe)
    execute_locally(started, concurrency=2)
    finish_run(started)

for line in sys.stdin:
    seconds, _, resume = line.strip().partition(" ")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            work(resume or None, write)
        finally:
            os._exit(0)
    os.close(write)
    found = os.read(read, 100).decode()
    os.close(read)
    time.sleep(float(seconds))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(found, flush=True)
"""
"""Runs without an orchestrator, each in a fork of a process that has imported everything already.

Reads `seconds [run]` a line: starts or continues a run, kills -9 it so long after it has begun to
ask, and prints its id.
"""


@contextmanager
def killer_of(lab: EvaluationLab) -> Iterator[Callable[[float, str | None], str]]:
    """Give a call that runs, or continues a run, and kills it after some seconds."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLER, str(lab.root)],
        env=lab.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reading, writing = process.stdout, process.stdin

        def kill(seconds: float, run_id: str | None) -> str:
            print(seconds, run_id or "", file=writing, flush=True)
            return reading.readline().strip()

        yield kill
        process.stdin.close()
        process.wait()


def kill_and_check(lab: EvaluationLab, *, kills: int, seed: int, most_seconds: float) -> None:
    """Kill runs again and again at random moments; what had finished stays as it was.

    After a kill every file is whole, and every answer that was there before is there still, as it
    was. A run that was killed after it had landed is finished, and another one is begun.
    """
    draw = random.Random(seed)
    planned = {task.id for task in lab.load().frozen.tasks}
    run_id: str | None = None
    before: dict[str, float] = {}
    with killer_of(lab) as kill:
        for _ in range(kills):
            killed = kill(draw.uniform(0, most_seconds), run_id)
            assert killed, "the run did not start"
            folder = lab.warehouse / "captures" / killed
            if (folder / "run.json").exists():
                now = read_whole(folder)
                assert set(now) <= planned
                assert {task: now.get(task) for task in before} == before
                run_id, before = killed, now
            else:
                check_landed(lab, killed, planned, before)
                run_id, before = None, {}
    if run_id is not None:
        report = lab.run("resume", resume=run_id).report
        assert report.run_id == run_id
        assert (report.counts.executed, report.counts.infra) == (len(planned), 0)
        assert report.counts.resumed == len(before)
        check_landed(lab, run_id, planned, before)


def read_whole(folder: Path) -> dict[str, float]:
    """Read every file of a run's folder, each of which must be whole; give task → time."""
    for path in folder.glob("*.json"):
        json.loads(path.read_bytes())
    return {
        capture.task_id: dt.datetime.fromisoformat(capture.captured_at).timestamp()
        for capture in CaptureStore(folder).read_captures().values()
    }


def check_landed(
    lab: EvaluationLab, run_id: str, planned: set[str], before: dict[str, float]
) -> None:
    """Exactly the planned rows, none lost and none doubled, and the earlier ones as they were."""
    rows = lab.select("SELECT task_id, captured_at FROM captures WHERE run_id = ?", run_id)
    assert sorted(row["task_id"] for row in rows) == sorted(planned)
    landed = {row["task_id"]: row["captured_at"].timestamp() for row in rows}
    assert {task: landed[task] for task in before} == before
    assert lab.select("SELECT status FROM runs WHERE run_id = ?", run_id) == [
        {"status": "finished"}
    ]
