"""kill -9 at random moments of every command that writes: nothing is lost, doubled or left.

COLDRUN_KILLS is how often each command is killed (25 by default, 200 in all). A table is printed,
and added to the file COLDRUN_TABLE.
"""

from __future__ import annotations

import base64
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from coldrun.warehouse.reader import connect, select_rows
from tests.evaluations import COLDRUN, EvaluationLab
from tests.history.small import SmallHistory
from tests.holdouts import make_holdout_lab

KILLS = int(os.environ.get("COLDRUN_KILLS", "25"))
COMMANDS = ("run", "freeze", "backfill", "decompose", "nightly", "holdout", "prune", "server")
SLOW = """
import time
_answer = answer

def answer(query):
    time.sleep(0.05)
    return _answer(query)
"""
TEMPORARY = (".tmp", ".part", ".partial", ".stamp")

Answers = set[tuple[str, str]]


@dataclass
class World:
    """Evaluations over one warehouse, and the commands that are killed."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.small = SmallHistory(self.root)
        self.small.add("first", [1, 2])
        self.small.add("second", [1, 2, 3])
        self.small.add("third", [1, 2, 3, 4])
        self.small.freeze()
        self.toy = EvaluationLab(self.root / "toy").prepare(24, arm=SLOW)
        self.sealed = make_holdout_lab(self.root / "sealed")
        self.lab = EvaluationLab(self.root)
        self.environment = {
            "COLDRUN_HOLDOUT_KEY": base64.b64encode(bytes(range(32))).decode(),
            "COLDRUN_STATE": str(self.root / "state"),
            "XDG_CONFIG_HOME": str(self.root / "user"),
        }
        assert self.call("freeze", self.sealed.config).returncode == 0

    def call(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return self.lab.coldrun(*words, env=self.environment)

    def words(self, command: str) -> list[str | Path]:
        small, sealed = self.small.config, self.sealed.config
        first, last = self.small.commits[0], self.small.commits[-1]
        unfinished = sorted((self.lab.warehouse / "captures").glob("*/run.json"))
        given: dict[str, list[str | Path]] = {
            "run": ["run", self.toy.config],
            "freeze": ["freeze", self.toy.config, "--force"],
            "backfill": ["backfill", small, "--commits", f"{first}..{last}", "--cold"],
            "decompose": ["decompose", small, "--from", first, "--to", last],
            "nightly": ["nightly", "once", small],
            "holdout": ["holdout", "open", sealed, "--reason", "again", "--override"],
            "prune": ["prune", "--older-than", "0"],
            "server": ["server", "start"],
        }
        if command == "run" and unfinished:
            return [*given["run"], "--resume", unfinished[-1].parent.name]
        return given[command]

    def answers(self) -> Answers:
        """Every answer that is on disk, by run and key."""
        files = (self.lab.warehouse / "captures").glob("*/*.json")
        found = {(path.parent.name, path.stem) for path in files if len(path.stem) == 64}
        rows = select_rows(connect(self.lab.warehouse), "SELECT run_id, key FROM captures")
        return found | {(row["run_id"], row["key"]) for row in rows}

    def doubled(self) -> int:
        rows = "SELECT run_id FROM captures GROUP BY run_id, arm, task_id, trial"
        return len(select_rows(connect(self.lab.warehouse), f"{rows} HAVING count(*) > 1"))

    def left(self) -> list[str]:
        """Processes and files that nothing will end or remove."""
        pruned = self.call("prune", "--older-than", "0")
        assert pruned.returncode == 0, pruned.stderr
        found = [f"process {each.pid} {each.cmdline()[:3]}" for each in self.processes()]
        scratch = self.root / "scratch"
        found += map(str, [*scratch.glob("sessions/*/*"), *scratch.glob("holdout/*/")])
        for path in self.root.rglob("*"):
            if path.name.endswith(TEMPORARY) or path.name.startswith((".clone-", "home-")):
                found.append(str(path.relative_to(self.root)))
        return found

    def processes(self) -> list[psutil.Process]:
        mine = []
        for process in psutil.process_iter():
            try:
                words = " ".join(process.cmdline())
                if str(self.root) in words and process.status() != psutil.STATUS_ZOMBIE:
                    mine.append(process)
            except psutil.Error:
                continue
        return mine


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("command", COMMANDS)
def test_kills_of_a_command_lose_double_and_leave_nothing(tmp_path: Path, command: str) -> None:
    world = World(tmp_path / "world")
    draw, lost, killed, most = random.Random(command), 0, 0, 2.5
    known: Answers = set()
    for _ in range(KILLS):
        before = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-c", COLDRUN, *map(str, world.words(command))],
            env=world.lab.environment() | world.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                process.wait(timeout=draw.uniform(0.1 * most, most))
                most = max(0.3, 0.9 * (time.monotonic() - before))  # it ended: sooner next time
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
        now = world.answers()
        lost += len(known - now)
        known = now
    done = finish(world, command)
    lost += len(known - world.answers())
    time.sleep(0.5)
    doubled, left = world.doubled(), world.left()
    line = f"{command:10} killed {killed:3} lost {lost} doubled {doubled} left {len(left)}"
    sys.stdout.write(line + "\n")
    if name := os.environ.get("COLDRUN_TABLE"):
        with Path(name).open("a") as file:
            file.write(line + "\n")
    assert (lost, doubled, left) == (0, 0, []), (line, left)
    assert done.returncode in (0, 3, 4), done.stderr


def finish(world: World, command: str) -> subprocess.CompletedProcess[str]:
    """Let the command end once, and look at what it made."""
    done = world.call(*world.words(command))
    checks: dict[str, Callable[[], subprocess.CompletedProcess[str]]] = {
        "freeze": lambda: world.call("run", world.toy.config),
        "prune": lambda: world.call("run", world.toy.config),
        "holdout": lambda: world.call("holdout", "log", world.sealed.config),
        "server": lambda: world.call("server", "stop"),
    }
    return checks[command]() if command in checks else done
