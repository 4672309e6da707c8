"""What coldrun adds to an answer of a command arm that answers at once, beside inspect_ai.

    uv run python benchmarks/command_overhead.py
    uv run --with inspect-ai python benchmarks/command_overhead.py     with the peer

coldrun: a real subprocess over JSON Lines, one file per capture, landing, analysis, report.
inspect_ai: as many samples through `generate()` on its mock model, in its own process, no tool.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_setup import INSTANT, PANEL, make_evaluation
from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.run.run_lifecycle import RunRequest, execute_locally, start_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=2000)
    answers = parser.parse_args().answers
    ours, asking = time_coldrun(answers)
    print(f"{answers} answers; milliseconds per answer")
    print(f"coldrun, asking alone           {1000 * asking / answers:8.3f}")
    print(f"coldrun, start to landed report {1000 * ours / answers:8.3f}")
    if importlib.util.find_spec("inspect_ai") is None:
        print("inspect_ai is not there: repeat with `uv run --with inspect-ai python …`")
        return
    theirs = time_inspect(answers)
    print(f"inspect_ai, mock model          {1000 * theirs / answers:8.3f}")
    print(f"ratio coldrun / inspect_ai      {ours / theirs:8.3f}")


def time_coldrun(answers: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        evaluation = make_evaluation(folder, PANEL + INSTANT, answers)
        began = time.perf_counter()
        started = start_run(evaluation, RunRequest(warehouse=folder / "data"), point=None)
        asking = time.perf_counter()
        execute_locally(started, concurrency=1)
        asked = time.perf_counter() - asking
        report = finish_run(started).report
        whole = time.perf_counter() - began
    if report.counts.executed != answers or report.counts.infra:
        raise SystemExit(f"the run is not what it should be: {report.counts}")
    return whole, asked


def time_inspect(answers: int) -> float:
    from inspect_ai import Task, eval  # noqa: A004 - the peer's own name
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    samples = [Sample(input=f"number item-{n}", target="Default") for n in range(answers)]
    with tempfile.TemporaryDirectory() as name:
        task = Task(dataset=samples, solver=generate(), scorer=includes())
        # a usage of its own, or the mock model downloads a tokenizer to count with
        said = ModelOutput.from_content("mockllm/model", "Default")
        said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        model = get_model("mockllm/model", custom_outputs=[said] * answers)
        began = time.perf_counter()
        logs = eval(task, model=model, log_dir=name, display="none")
        seconds = time.perf_counter() - began
    if logs[0].status != "success":
        raise SystemExit(f"inspect_ai ended with {logs[0].status}: {logs[0].error}")
    return seconds


if __name__ == "__main__":
    main()
