"""Stages run in any process: their arguments are plain, and the run's manifest says the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coldrun.tasks.judge.load_run import load_report
from coldrun.tasks.lib.errors import InvalidRunError
from coldrun.tasks.lib.served import serving
from coldrun.tasks.run.live_run import ask_shard, end_run, find_run, plan_run
from tests.evaluations import EvaluationLab

CALL = """
import json, sys
from importlib import import_module
for module, name, arguments in json.loads(sys.argv[1]):
    print(getattr(import_module("coldrun.tasks." + module), name).fn(*arguments))
"""


def call_elsewhere(lab: EvaluationLab, *calls: tuple[str, str, list[object]]) -> list[str]:
    """Call stages one after the other in a new process; gives what each returned, as text."""
    with serving({"toy": lab.config}, warehouse=lab.warehouse, scratch=lab.scratch):
        done = subprocess.run(
            [sys.executable, "-c", CALL, json.dumps(calls)],
            env=lab.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_each_stage_runs_in_another_process(tmp_path: Path) -> None:
    """One process plans and ends; others ask, land and judge what only the manifest tells them."""
    lab = EvaluationLab(tmp_path).prepare(20)
    (run_id,) = call_elsewhere(lab, ("run.stage", "plan_stage", ["toy", None, {}]))
    shards = len(find_run(lab.warehouse, run_id, lab.scratch).store.read_shards())

    assert shards > 1
    assert ask_shard(lab.warehouse, run_id, 1, lab.scratch) == 8
    found = call_elsewhere(
        lab,
        *(("run.stage", "ask_stage", [run_id, number]) for number in range(2, shards + 1)),
        ("run.stage", "land_stage", [run_id]),
        ("judge.stage", "judge_stage", [run_id]),
    )

    assert found[-2:] == ["finished", "measured"]
    report, alone = load_report(lab.warehouse, run_id).report, lab.run().report
    assert (report.counts.executed, report.counts.infra) == (20, 0)
    assert [arm.measures for arm in report.arms] == [arm.measures for arm in alone.arms]


def test_worker_that_is_not_like_the_planner_refuses_to_ask(tmp_path: Path) -> None:
    """Keys are computed again from what the worker has, and must be those of the plan."""
    lab = EvaluationLab(tmp_path).prepare()
    run_id = plan_run(lab.load(), None, {}, lab.warehouse)
    end_run(run_id)
    lab.write_arm("# another adapter")

    with pytest.raises(InvalidRunError, match="not like the process that planned"):
        ask_shard(lab.warehouse, run_id, 1, lab.scratch)


@pytest.mark.prefect
@pytest.mark.soak
def test_run_with_processes_gives_what_threads_give(
    tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    """`runner = "processes"` asks each shard in a process of its own."""
    lab = EvaluationLab(tmp_path)
    lab.prepare(20)
    threads = lab.run().report
    lab.write(lab.config.read_text().replace("[run]", '[run]\nrunner = "processes"'))
    done = lab.coldrun("run", lab.config, "--json", "-", env=prefect_server)

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["counts"]["executed"] == 20
    assert report["verdict"] == threads.verdict
