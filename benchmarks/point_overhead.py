"""What a point of a history costs beyond the product itself, beside asv, in one run.

    uv run python benchmarks/point_overhead.py
    uv run --with asv --with virtualenv python benchmarks/point_overhead.py     with the peer

The product answers at once and needs no set-up. asv runs a benchmark that does nothing over the
same commits, with its own build and without one. Exits 1 beyond 0.5 s for a point.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_setup import INSTANT, PANEL, commit_all, cpu_seconds, git, make_evaluation
from coldrun.flows.prefect_server import require_server, start_server, stop_server, use_server
from coldrun.tasks.history.commits import open_product, select_commits
from coldrun.tasks.history.history_requests import HistoryRequest
from coldrun.tasks.lib.served import serving

LIMIT_SECONDS = 0.5

PRODUCT = """
[product]
repo = "../product"
"""

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "instant"
version = "1"

[tool.setuptools]
packages = ["instant"]
"""

BENCHMARK = """
def track_answer():
    return 1
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=12)
    points = parser.parse_args().points
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        commits = make_product(root / "product", points)
        ours, busy = time_coldrun(root, commits)
        print(
            f"coldrun: {ours:.2f} s for a point, {busy:.2f} s of them CPU ({points} points and "
            "the repeat of the first)"
        )
        if importlib.util.find_spec("asv") is None:
            print("asv is not installed: uv run --with asv --with virtualenv python …")
        else:
            for name, commands in (
                ("build and installation", {}),
                ("neither build nor installation", {"build_command": [], "install_command": []}),
            ):
                theirs = time_asv(root, name, commands)
                print(f"asv, {name}: {theirs:.2f} s for a point, {theirs / ours:.1f} times as long")
    sys.exit(int(ours > LIMIT_SECONDS))


def make_product(path: Path, commits: int) -> list[str]:
    (path / "instant").mkdir(parents=True)
    (path / "pyproject.toml").write_text(PROJECT)
    git(path, "init", "--quiet", "--initial-branch=main")
    found = []
    for number in range(commits):
        (path / "instant" / "__init__.py").write_text(f"state = {number}\n")
        (path / "known.txt").write_text(" ".join(f"item-{n}" for n in range(number % 12 + 1)))
        found.append(commit_all(path, f"state {number}"))
    return found


def time_coldrun(root: Path, commits: list[str]) -> tuple[float, float]:
    evaluation = make_evaluation(root, PANEL + PRODUCT + INSTANT, 12)
    repository = open_product(evaluation)
    os.environ["COLDRUN_STATE"] = str(root / "state")  # not the server of the user
    start_server(print)
    name = evaluation.frozen.name
    with (
        use_server(require_server(print), verbose=False),
        serving(
            {name: evaluation.config_path},
            warehouse=root / "data",
            scratch=root / "scratch",
        ),
    ):
        from coldrun.flows.history import run_history

        def conduct(which: list[str]) -> tuple[float, float]:
            request = HistoryRequest(
                kind="backfill",
                evaluation=evaluation,
                warehouse=root / "data",
                commits=select_commits(repository, ",".join(which)),
                arm="instant",
                mode="cold",
            )
            began, used = time.perf_counter(), cpu_seconds()
            history = run_history(request)
            assert history.counts.points == len(which)
            runs = history.counts.runs
            return (time.perf_counter() - began) / runs, (cpu_seconds() - used) / runs

        conduct(commits[:1])  # imports, and what is read once a process
        try:
            return conduct(commits)
        finally:
            stop_server()


def time_asv(root: Path, name: str, commands: dict[str, list[str]]) -> float:
    folder = root / f"asv-{name.replace(' ', '-')}"
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "__init__.py").write_text("")
    (folder / "benchmarks" / "instant.py").write_text(BENCHMARK)
    settings = {
        "version": 1,
        "project": "instant",
        "repo": str(root / "product"),
        "branches": ["main"],
        "environment_type": "virtualenv",
        "pythons": [f"{sys.version_info.major}.{sys.version_info.minor}"],
        **commands,
    }
    (folder / "asv.conf.json").write_text(json.dumps(settings))
    run_asv(folder, "machine", "--yes")
    run_asv(folder, "run", "--quick", "main^!")
    began = time.perf_counter()
    run_asv(folder, "run", "--quick", "--skip-existing", "main")
    commits = len(git(root / "product", "rev-list", "main").splitlines()) - 1
    return (time.perf_counter() - began) / commits


def run_asv(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "asv", *arguments],
        cwd=folder,
        env=os.environ | {"HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"asv {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    main()
