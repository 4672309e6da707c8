"""What commands that read a warehouse cost in CPU seconds: 300 runs, and one of 20,000 answers.

    uv run python benchmarks/stored_much.py [--keep DIR]

The floor is what `coldrun --help` costs, a process that reads nothing. The arms answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_setup import COLDRUN, PANEL, answer_at_once, cpu_seconds_of, make_evaluation
from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.lib.records import Point, Question
from coldrun.tasks.run.prepare import Evaluation
from coldrun.tasks.run.run_lifecycle import RunRequest, execute_locally, start_run

ARM = """
[[arm]]
name = "{}"
kind = "command"
argv = ["true"]
product = false
"""
PRODUCT = """
[product]
repo = "."
"""
GOALS = {"runs": 0.3, "report": 1.0, "trend": 1.0, "compare": 1.5, "doctor": 3.0}
GOAL_ANSWERS, GOAL_MB = 3.0, 400


def find_mostly(question: Question) -> str:
    """The right item, but not for every third question."""
    number = int(question.id[1:])
    return f"item-{number if number % 3 else 0}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--answers", type=int, default=20_000)
    parser.add_argument("--keep", type=Path, help="make the warehouses here, and use them again")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        many, large = folder / "many", folder / "large"
        if not many.exists():
            fill(many, tasks=40, arms=2, runs=given.runs)
            fill(large, tasks=given.answers // 4, arms=4, runs=1)
        floor, _ = cpu("--help")
        print(f"{'--help':8} {floor:6.2f} s")
        config = many / "evaluation" / "instant.toml"
        for command, words in (
            ("runs", ["runs"]),
            ("report", ["report", "last"]),
            ("trend", ["trend", str(config)]),
            ("compare", ["compare", *newest(many, 2)]),
            ("doctor", ["doctor"]),
        ):
            show(f"{command}, {given.runs} runs", cpu(*words, at=many), floor, GOALS[command])
        spent = cpu("report", "last", at=large)
        show(f"report, {given.answers} answers", spent, floor, GOAL_ANSWERS)
        print(f"{'':24} {spent[1]:.0f} MB, goal {GOAL_MB}")


def fill(root: Path, *, tasks: int, arms: int, runs: int) -> None:
    root.mkdir(parents=True)
    config = PANEL + "".join(ARM.format(f"tool-{number}") for number in range(arms)) + PRODUCT
    evaluation: Evaluation = make_evaluation(root, config, tasks)
    for number in range(runs):
        point = Point(
            repo=".", directory=root, commit=f"{number:040x}", tree=f"{number:040x}", is_dirty=False
        )
        started = start_run(evaluation, RunRequest(warehouse=root / "data"), point=point)
        answer_at_once(started, find_mostly)
        execute_locally(started, concurrency=1)
        finish_run(started)


def newest(root: Path, number: int) -> list[str]:
    return [path.stem for path in sorted((root / "data" / "runs").glob("2*.parquet"))[-number:]]


def cpu(*words: str, at: Path | None = None) -> tuple[float, float]:
    """CPU seconds of a command and of its children, the least of three, and its peak of memory."""
    where = {"COLDRUN_WAREHOUSE": f"{at}/data", "COLDRUN_SCRATCH": f"{at}/scratch"} if at else {}
    seconds = min(cpu_seconds_of(COLDRUN, *words, check=False, **where) for _ in range(3))
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def show(what: str, spent: tuple[float, float], floor: float, goal: float) -> None:
    state = "met" if spent[0] <= goal else "MISSED"
    print(f"{what:24} {spent[0]:6.2f} s, {spent[0] / floor:5.1f} floors; goal {goal} s: {state}")


if __name__ == "__main__":
    main()
