"""What the benchmarks share: evaluations made on the spot, arms that cost nothing, CPU, git."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.freeze_panel import freeze_panel
from coldrun.tasks.freeze.lock import EvaluationFiles
from coldrun.tasks.freeze.write_panel import write_frozen
from coldrun.tasks.lib.records import Question, Reply, SessionEnd, SessionStart
from coldrun.tasks.mine.mine_panel import mine_panel
from coldrun.tasks.run.prepare import Evaluation, load_evaluation
from coldrun.tasks.run.run_lifecycle import StartedRun

COLDRUN = "from coldrun.cli.main import main; main(prog_name='coldrun')"

PANEL = """\
[panel]
kind = "jsonl"
file = "tasks.jsonl"
answer = "set"

[sample]
rule = "all"
"""

INSTANT = """
[[arm]]
name = "instant"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "arm.py"
"""

ARM = """
import json, sys
KNOWN = open("known.txt").read().split()
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps({"type": "ready", "nonce": message["nonce"]}), flush=True)
    elif message["type"] == "question":
        words = [word for word in message["query"].split() if word in KNOWN]
        print(json.dumps({"type": "answer", "id": message["id"], "paths": words}), flush=True)
    else:
        break
"""
"""Answers at once with the items that a question names and the product knows."""


@dataclass(slots=True)
class InstantSession:
    """A session in this process that answers at once with the item that `find` gives."""

    find: Callable[[Question], str]
    start: SessionStart = field(default_factory=SessionStart)

    def ask(self, question: Question) -> Reply:
        items = [{"path": self.find(question)}]
        return Reply(status="answered", raw=json.dumps({"type": "answer", "items": items}))

    def close(self) -> SessionEnd:
        return SessionEnd()

    def abort(self) -> None:
        """Nothing to end."""


def answer_at_once(started: StartedRun, find: Callable[[Question], str]) -> None:
    run = started.run
    run.arms = tuple(replace(arm, open_session=lambda *_: InstantSession(find)) for arm in run.arms)


def make_evaluation(root: Path, config: str, questions: int) -> Evaluation:
    path = root / "evaluation" / "instant.toml"
    path.parent.mkdir()
    path.write_text(config)
    (path.parent / "arm.py").write_text(ARM)
    rows = (
        {"id": f"t{number:06d}", "query": f"where is item-{number}", "gold": [f"item-{number}"]}
        for number in range(questions)
    )
    (path.parent / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = load_config(path)
    mined = mine_panel(loaded.panel, config_dir=path.parent, scratch=root / "scratch")
    files, frozen = EvaluationFiles(path), freeze_panel(loaded, mined)
    write_frozen(files, frozen, force=False, had_runs=False, now="2026-01-01T00:00:00+00:00")
    return load_evaluation(path, scratch=root / "scratch")


def git(path: Path, *arguments: str, **options: Any) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=path,
        check=True,
        capture_output=True,
        env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"},
        **options,
    )
    return done.stdout.decode("utf-8", "replace").strip()


def commit_all(path: Path, message: str) -> str:
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "-m", message)
    return git(path, "rev-parse", "HEAD")


def write_files(
    path: Path, numbers: Iterable[int], source: random.Random, vocabulary: list[str]
) -> None:
    for number in numbers:
        words = [
            vocabulary[min(int(source.paretovariate(0.6)), len(vocabulary)) - 1]
            for _ in range(1000)
        ]
        lines = [" = ".join(words[start : start + 8]) for start in range(0, len(words), 8)]
        target = module_path(path, number)
        target.parent.mkdir(exist_ok=True)
        target.write_text("\n".join(lines) + "\n")


def module_path(path: Path, number: int) -> Path:
    return path / f"package{number % 30}" / f"module{number}.py"


def cpu_seconds_of(program: str, *words: str, check: bool = True, **environment: str) -> float:
    """CPU seconds of a Python program in a process of its own, and of its children."""
    before = cpu_seconds(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", program, *words],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        check=check,
    )
    return cpu_seconds(resource.RUSAGE_CHILDREN) - before


def cpu_seconds(*whose: int) -> float:
    """CPU seconds so far of this process and of its children that ended, or of `whose` alone."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    usages = [resource.getrusage(who) for who in whose or both]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
