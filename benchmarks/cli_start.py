"""CPU seconds of `coldrun --help`, beside a bare Click and (if it is there) a bare Typer.

    python benchmarks/cli_start.py [--repeats N]
    uv run --with typer python benchmarks/cli_start.py

Goal: at most 0.35 CPU seconds. The three take turns, so that a busy machine slows all alike.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_setup import COLDRUN, cpu_seconds_of

ROOT = Path(__file__).resolve().parent.parent

PROGRAMS = {
    "python -c pass": "pass",
    "bare Click": "import click\n@click.command()\ndef main(): 'Help.'\nmain()",
    "bare Typer": "import typer\ndef main(): 'Help.'\ntyper.run(main)",
    "coldrun": COLDRUN,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    programs = dict(PROGRAMS)
    if importlib.util.find_spec("typer") is None:
        del programs["bare Typer"]
        print("typer is not importable here: left out")
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in programs.items():
            seconds[name].append(cpu_seconds_of(program, "--help", PYTHONPATH=str(ROOT)))
    bare = statistics.median(seconds["bare Click"])
    for name, found in seconds.items():
        median = statistics.median(found)
        print(f"{name:15} {median:.3f} CPU s, {median / bare:.2f} times a bare Click")
    print("goal: coldrun at most 0.35 CPU s")


if __name__ == "__main__":
    main()
