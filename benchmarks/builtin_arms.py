"""What a panel whose tasks have a tree each costs the built-in arms, against one with one tree.

    python benchmarks/builtin_arms.py [REPO] [--tasks N] [--repeats N]

Without REPO a repository is generated. A run is a process of its own with an empty token cache;
figures are CPU seconds, those of git included. Goal: at most 3 times the panel with one base,
and `history` ready within twice the time of the log.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_setup import COLDRUN, commit_all, cpu_seconds, git, module_path, write_files

GOAL = 3.0
PANEL = """\
[panel]
kind = "commit-files"
repo = "{repo}"
base = "{base}"
[sample]
size = {tasks}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", nargs="?", type=Path)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--run", type=Path, help="run this configuration and print its figures")
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.run)))
        return
    with tempfile.TemporaryDirectory() as folder:
        repository = options.repository or generate(Path(folder) / "repo", 3 * options.tasks)
        print(f"{repository.name}, {options.tasks} tasks")
        configs = {
            name: freeze(Path(folder) / f"{name}.toml", repository.resolve(), base, options.tasks)
            for name, base in (("fixed", pick(repository, options.tasks)), ("parents", "parent"))
        }
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in configs}
        for _ in range(options.repeats):
            for name, config in configs.items():
                runs[name].append(measure(config))
        report_history(repository)
    for what in ("asking", "run", "wall"):
        one, many = (min(each[what] for each in runs[name]) for name in ("fixed", "parents"))
        print(f"{what:8} one base {one:6.2f} s   parent bases {many:6.2f} s   {many / one:5.2f} x")
        if what == "run":
            print(f"{'':8} goal {GOAL}: {'met' if many <= GOAL * one else 'MISSED'}")


def report_history(repository: Path) -> None:
    """How long the log takes to become searchable, against git's time to print it."""
    from coldrun.tasks.arms.builtin.history import CommitLog
    from coldrun.tasks.lib.git.commit_log import FOLLOW_RENAMES, LOG_OPTIONS
    from coldrun.tasks.lib.git.repository import Repository

    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        git(repository, "log", *LOG_OPTIONS, *FOLLOW_RENAMES, "--topo-order")
        printed_at = time.perf_counter()
        opened = Repository.open(repository)
        CommitLog(opened).open_past(opened.resolve("HEAD").commit)
        seconds.append((printed_at - started, time.perf_counter() - printed_at))
    log, ready = (min(each) for each in zip(*seconds, strict=True))
    goal = "met" if ready <= 2 * log else "MISSED"
    print(f"history  git log  {log:6.2f} s   ready        {ready:6.2f} s   {ready / log:5.2f} x")
    print(f"{'':8} goal 2.0: {goal}")


def measure(config: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--run", str(config)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def run(path: Path) -> dict[str, float]:
    started = time.perf_counter()
    from coldrun.tasks.judge.land_judgement import finish_run
    from coldrun.tasks.run.prepare import load_evaluation
    from coldrun.tasks.run.run_lifecycle import RunRequest, execute_locally, start_run

    with tempfile.TemporaryDirectory() as folder:
        evaluation = load_evaluation(path, scratch=Path(folder))
        begun = start_run(evaluation, RunRequest(warehouse=Path(folder) / "warehouse"), point=None)
        before = cpu_seconds()
        execute_locally(begun, concurrency=2)
        asking = cpu_seconds() - before
        finish_run(begun)
    return {"asking": asking, "run": cpu_seconds(), "wall": time.perf_counter() - started}


def pick(repository: Path, tasks: int) -> str:
    from coldrun.tasks.config import PanelConfig
    from coldrun.tasks.lib.git.repository import Repository
    from coldrun.tasks.mine.pick_base import pick_base

    spec = PanelConfig(kind="commit-files", repo=str(repository), base="HEAD")
    return pick_base(Repository.open(repository), "HEAD", spec, wanted=4 * tasks).commit


def freeze(config: Path, repository: Path, base: str, tasks: int) -> Path:
    config.write_text(PANEL.format(repo=repository, base=base, tasks=tasks))
    root = Path(__file__).resolve().parent.parent
    subprocess.run(
        [sys.executable, "-c", COLDRUN, "freeze", str(config)],
        cwd=root,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return config


def generate(path: Path, commits: int) -> Path:
    source = random.Random(0)
    vocabulary = ["".join(source.choices("abcdefghijklmnop", k=7)) for _ in range(20_000)]
    path.mkdir()
    git(path, "init", "-q")
    write_files(path, range(400), source, vocabulary)
    commit_all(path, "first")
    for _ in range(commits):
        for number in source.sample(range(400), 3):
            edit_file(module_path(path, number), source, vocabulary)
        commit_all(path, " ".join(source.sample(vocabulary[:2000], 12)))
    return path


def edit_file(target: Path, source: random.Random, vocabulary: list[str]) -> None:
    lines = target.read_text().splitlines()
    for index in source.sample(range(len(lines)), len(lines) // 20):
        lines[index] = " = ".join(source.sample(vocabulary, 8))
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
