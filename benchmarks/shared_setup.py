"""What a history saves when its points share a set-up, in one run.

    uv run python benchmarks/shared_setup.py

The product is installed in editable mode by pip into a virtual environment of its own, without a
network. Its commits are measured by a backfill twice: with `setup_key`, and without it. The peer is
the set-up itself, run by hand as often as there are commits.

Goal: with `setup_key` the whole history takes less time than those set-ups alone. Exits 1 when it
takes longer, and when a point's score is not its commit's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.point_overhead import CONFIG, git, make_evaluation
from coldrun.tasks.history.commits import open_product, select_commits
from coldrun.tasks.history.history_lifecycle import HistoryRequest, conduct_history

SETUP = (
    "python3 -m venv .venv && "
    ".venv/bin/pip install --quiet --no-index --no-build-isolation --editable ."
)

PROJECT = """
[build-system]
requires = []
build-backend = "build_instant"
backend-path = ["."]

[project]
name = "instant"
version = "1"
"""

BACKEND = """
from pathlib import Path
from zipfile import ZipFile

FILES = {
    "METADATA": "Metadata-Version: 2.1\\nName: instant\\nVersion: 1\\n",
    "WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "RECORD": "",
}

def build_editable(folder, config_settings=None, metadata_directory=None):
    with ZipFile(Path(folder, "instant-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("instant.pth", str(Path("src").resolve()))
        for name, text in FILES.items():
            wheel.writestr(f"instant-1.dist-info/{name}", text)
    return "instant-1-py3-none-any.whl"

build_wheel = build_editable
"""

ARM = """
import json, sys
import instant
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps({"type": "ready", "nonce": message["nonce"]}), flush=True)
    elif message["type"] == "question":
        words = [word for word in message["query"].split() if word in instant.KNOWN]
        print(json.dumps({"type": "answer", "id": message["id"], "paths": words}), flush=True)
    else:
        break
"""


def main() -> None:
    """Time the set-ups by hand, and the history with and without sharing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=8)
    points = parser.parse_args().points
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        commits = make_product(root / "product", points)
        by_hand = time_by_hand(root / "product")
        alone = time_history(root / "alone", commits, key="")
        shared = time_history(root / "shared", commits, key='setup_key = ["pyproject.toml"]')
    print(f"the set-up by hand: {by_hand:.2f} s, {by_hand * points:.1f} s for {points} commits")
    print(f"a backfill, each set up for itself: {alone:.1f} s, {alone / shared:.1f} times as long")
    print(f"a backfill that shares one set-up: {shared:.1f} s")
    sys.exit(int(shared > by_hand * points))


def make_product(path: Path, commits: int) -> list[str]:
    """A package that knows one item more at every commit."""
    (path / "src" / "instant").mkdir(parents=True)
    (path / "pyproject.toml").write_text(PROJECT)
    (path / "build_instant.py").write_text(BACKEND)
    git(path, "init", "--quiet", "--initial-branch=main")
    found = []
    for number in range(commits):
        known = [f"item-{n}" for n in range(number % 12 + 1)]
        (path / "src" / "instant" / "__init__.py").write_text(f"KNOWN = {known}\n")
        git(path, "add", "--all")
        git(path, "commit", "--quiet", "-m", f"know {number + 1}")
        found.append(git(path, "rev-parse", "HEAD"))
    return found


def time_by_hand(product: Path) -> float:
    """Seconds of the set-up in a clone."""
    with tempfile.TemporaryDirectory() as folder:
        git(product, "clone", "--quiet", ".", f"{folder}/clone")
        began = time.perf_counter()
        subprocess.run(["sh", "-c", SETUP], cwd=f"{folder}/clone", check=True)
        return time.perf_counter() - began


def time_history(root: Path, commits: list[str], *, key: str) -> float:
    """Seconds of a backfill from nothing, its scores checked."""
    root.mkdir()
    text = CONFIG.replace(
        'repo = "../product"', f'repo = "../../product"\nsetup = ["sh", "-c", "{SETUP}"]\n{key}'
    ).replace('"{python}"', '".venv/bin/python", "-P"')
    evaluation = make_evaluation(root, text, arm=ARM)
    request = HistoryRequest(
        kind="backfill",
        evaluation=evaluation,
        warehouse=root / "data",
        commits=select_commits(open_product(evaluation), ",".join(commits)),
        arm="instant",
        mode="cold",
    )
    began = time.perf_counter()
    history = conduct_history(request)
    seconds = time.perf_counter() - began
    solved = [point.measures["exact"].count for point in history.points]
    if solved != [number % 12 + 1 for number in range(len(commits))]:
        raise SystemExit(f"the scores are not those of the commits: {solved}")
    return seconds


if __name__ == "__main__":
    main()
