"""What it costs to orchestrate and land an answer, beside a plain thread pool in the same run.

    python benchmarks/orchestration.py [--answers N] [--repeats N]

An arm that answers at once is asked through the flow, on a Prefect server that is started for it,
and from a thread pool. Goal: at most 2 ms for each answer at 5,000 answers, all included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_setup import PANEL, answer_at_once, make_evaluation
from coldrun.flows.prefect_server import require_server, start_server, stop_server, use_server
from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.lib.served import serving
from coldrun.tasks.lib.watch import Watch
from coldrun.tasks.run.live_run import keep_live
from coldrun.tasks.run.prepare import Evaluation
from coldrun.tasks.run.run_lifecycle import RunRequest, execute_locally, start_run

ARM = """
[[arm]]
name = "instant"
kind = "command"
argv = ["true"]
sessions = 2
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        evaluation = make_evaluation(Path(folder), PANEL + ARM, options.answers)
        request = RunRequest(warehouse=Path(folder) / "data")
        os.environ["COLDRUN_STATE"] = str(Path(folder) / "state")  # not the server of the user
        start_server(print)
        with (
            use_server(require_server(print), verbose=False),
            serving({}, warehouse=request.warehouse, scratch=evaluation.scratch),
        ):
            from coldrun.flows.evaluate import answer
            from coldrun.flows.orchestrate import call_flow

            def run_flow() -> None:
                started = start_run(evaluation, request, point=None)
                answer_at_once(started, lambda _: "item-0")
                run_id = keep_live(started)
                call_flow(lambda: answer(run_id), watch=Watch())

            run_flow()  # the first flow of a process imports and connects
            flow, plain = [], []
            for _ in range(options.repeats):
                plain.append(measure(lambda: run_plainly(evaluation, request)))
                flow.append(measure(run_flow))
        stop_server()
        print_figures(options.answers, flow=flow, plain=plain)


def run_plainly(evaluation: Evaluation, request: RunRequest) -> None:
    started = start_run(evaluation, request, point=None)
    answer_at_once(started, lambda _: "item-0")
    execute_locally(started, concurrency=evaluation.config.run.concurrency)
    finish_run(started)


class Seconds(NamedTuple):
    """Wall seconds, and processor seconds of this process (the server's are not among them)."""

    wall: float
    cpu: float


def measure(call: Callable[[], None]) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def print_figures(answers: int, *, flow: list[Seconds], plain: list[Seconds]) -> None:
    print(f"{answers} answers, medians of {len(flow)}, starting, landing and analysis included:")
    medians = {}
    for name, found in (("through the flow", flow), ("plain thread pool", plain)):
        middle = Seconds(*(statistics.median(column) for column in zip(*found, strict=True)))
        each = Seconds(*(1000 * value / answers for value in middle))
        medians[name] = middle
        print(
            f"  {name:18} {middle.wall:6.2f} s wall, {each.wall:.3f} ms per answer; "
            f"{middle.cpu:6.2f} s CPU, {each.cpu:.3f} ms per answer"
        )
    through, beside = medians.values()
    print(f"  ratio {through.wall / beside.wall:.2f} wall, {through.cpu / beside.cpu:.2f} CPU")
    print("  goal: at most 2 ms per answer through the flow")


if __name__ == "__main__":
    main()
