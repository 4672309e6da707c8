"""Whole evaluations in a folder of their own: a configuration, tasks, an arm, a warehouse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from coldrun.cli.main import main
from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.check_config import check_config
from coldrun.tasks.freeze.freeze_panel import FrozenResult, freeze_panel
from coldrun.tasks.freeze.lock import EvaluationFiles
from coldrun.tasks.freeze.write_panel import Written, write_frozen
from coldrun.tasks.judge.build_report import BuiltReport
from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.judge.report_model import ArmPart, Report
from coldrun.tasks.mine.mine_panel import mine_panel
from coldrun.tasks.run.execute import Progress
from coldrun.tasks.run.prepare import Evaluation, load_evaluation
from coldrun.tasks.run.run_lifecycle import (
    Mode,
    RunRequest,
    StartedRun,
    execute_locally,
    start_run,
)
from coldrun.warehouse.damage import UnreadableFileWarning
from coldrun.warehouse.reader import connect, select_rows

ROOT = Path(__file__).resolve().parent.parent

COLDRUN = "from coldrun.cli.main import main; main(prog_name='coldrun')"
"""The command line without its installed script, so that PYTHONPATH decides whose code runs."""

ARM = """
import json, os, re, sys, time

def say(**message):
    print(json.dumps(message), flush=True)

def answer(query):
    return {"items": [{"path": found} for found in re.findall(r"item-\\d+", query)]}

def serve():
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "hello":
            say(type="ready", nonce=message["nonce"])
        elif message["type"] == "question":
            say(type="answer", id=message["id"], **answer(message["query"]))
        else:
            break
"""
"""An arm that finds the items which the query names, but for the call of `serve()`."""

CONFIG = """\
[panel]
kind = "jsonl"
file = "tasks.jsonl"
answer = "set"

[sample]
rule = "all"

[run]
concurrency = 2

[[arm]]
name = "reader"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "arm.py"
"""


@dataclass(slots=True)
class EvaluationLab:
    """An evaluation below `root`, by default of twelve tasks that `reader` gets all right."""

    root: Path
    name: str = "toy"
    config: Path = field(init=False)

    def __post_init__(self) -> None:
        self.config = self.root / "evaluation" / f"{self.name}.toml"
        self.config.parent.mkdir(parents=True, exist_ok=True)

    @property
    def warehouse(self) -> Path:
        return self.root / "data"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def files(self) -> EvaluationFiles:
        return EvaluationFiles(self.config)

    def write(self, text: str = CONFIG) -> None:
        self.config.write_text(text, encoding="utf-8")

    def write_arm(self, text: str = "", name: str = "arm.py") -> None:
        """Write the adapter: the plain reader, with `text` put before it serves."""
        path = self.config.parent / name
        path.write_text(f"{ARM}\n{text}\n\nserve()\n", encoding="utf-8")

    def write_tasks(
        self, count: int = 12, gold: Callable[[int], Sequence[str]] | None = None
    ) -> None:
        """Write tasks whose queries name their gold item, unless `gold` says another one."""
        rows = [
            {
                "id": f"t{number:04d}",
                "query": f"where is item-{number} handled?",
                "gold": list(gold(number)) if gold else [f"item-{number}"],
            }
            for number in range(count)
        ]
        self.write_rows(rows)

    def write_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.config.parent / "tasks.jsonl").write_text(text, encoding="utf-8")

    def prepare(self, count: int = 12, *, arm: str = "", config: str = CONFIG) -> EvaluationLab:
        """Write everything and freeze it."""
        self.write(config)
        self.write_arm(arm)
        self.write_tasks(count)
        self.freeze()
        return self

    def mine_and_freeze(self) -> FrozenResult:
        config = load_config(self.config)
        check_config(config)
        mined = mine_panel(config.panel, config_dir=self.config.parent, scratch=self.scratch)
        return freeze_panel(config, mined)

    def freeze(
        self,
        *,
        force: bool = False,
        had_runs: bool = False,
        now: str = "2026-08-01T00:00:00+00:00",
        last_run_lock: dict[str, Any] | None = None,
    ) -> Written:
        result = self.mine_and_freeze()
        return write_frozen(
            self.files,
            result,
            force=force,
            had_runs=had_runs,
            now=now,
            last_run_lock=last_run_lock,
        )

    def load(self) -> Evaluation:
        return load_evaluation(self.config, scratch=self.scratch)

    def start(
        self,
        mode: Mode = "cold",
        *,
        resume: str | None = None,
        trials: int | None = None,
        run_id: str | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> StartedRun:
        request = RunRequest(
            warehouse=self.warehouse,
            mode=mode,
            resume=resume,
            trials=trials,
            run_id=run_id,
        )
        started = start_run(self.load(), request, point=None)
        started.run.on_progress = on_progress
        return started

    def run(
        self,
        mode: Mode = "cold",
        *,
        resume: str | None = None,
        trials: int | None = None,
        run_id: str | None = None,
    ) -> BuiltReport:
        """Run from start to landing, without an orchestrator."""
        started = self.start(mode, resume=resume, trials=trials, run_id=run_id)
        execute_locally(started, concurrency=2)
        return finish_run(started)

    def select(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Ask the warehouse."""
        return select_rows(connect(self.warehouse), query, list(parameters))

    def coldrun(
        self, *arguments: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Call the command line with this lab's folders, in a process of its own."""
        return subprocess.run(
            [sys.executable, "-c", COLDRUN, *map(str, arguments)],
            cwd=cwd or self.root,
            env=self.environment() | (env or {}),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def invoke(
        self, *arguments: str | Path, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Call the command line in this process: as `coldrun`, without a second's imports.

        What a real process would end with as a traceback is raised here. Warnings of the
        warehouse are told as they are there; any other is an error, as in all tests.
        """
        words = [str(argument) for argument in arguments]
        hidden = {name: None for name in os.environ if name.startswith("PREFECT")}
        runner = CliRunner(env=hidden | self.environment() | (env or {}))
        with chdir(self.root), warnings.catch_warnings():
            warnings.simplefilter("default", UnreadableFileWarning)
            done = runner.invoke(main, words, prog_name="coldrun", catch_exceptions=False)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    def environment(self) -> dict[str, str]:
        """The environment of `coldrun`: this lab's folders, and no server of somebody else's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
        return kept | {
            "COLDRUN_WAREHOUSE": str(self.warehouse),
            "COLDRUN_SCRATCH": str(self.scratch),
            "COLDRUN_STATE": os.environ.get("COLDRUN_STATE") or str(self.root / "state"),
            "PYTHONPATH": os.environ.get("PYTHONPATH") or str(ROOT),
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }


def arm_of(report: Report, name: str) -> ArmPart:
    """One arm of a report."""
    return next(arm for arm in report.arms if arm.name == name)
