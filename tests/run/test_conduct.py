"""The life of a run: cold by default, resumed as itself, replayed only when asked and said so."""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.lib.errors import ColdrunError, UsageError
from coldrun.tasks.run.key_differences import explain_answer
from coldrun.tasks.run.manifest import new_run_id
from coldrun.tasks.run.prepare import prepare_evaluation_point
from coldrun.tasks.run.run_lifecycle import (
    RunRequest,
    execute_locally,
    revision_to_resume,
    start_run,
)
from coldrun.warehouse.reader import RUN_ID
from tests.conftest import RepositoryBuilder
from tests.evaluations import CONFIG, EvaluationLab

COUNTING = """
def answer(query, plain=answer):
    return {**plain(query), "stop_reason": os.urandom(8).hex()}
"""
"""An arm whose every answer is marked with a number of its own."""


WITH_CORPUS = """answer = "set"
repo = "../corpus"
base = "HEAD\""""


@pytest.fixture
def lab(tmp_path: Path) -> EvaluationLab:
    return EvaluationLab(tmp_path).prepare()


@pytest.fixture
def counted(tmp_path: Path) -> EvaluationLab:
    """A lab whose arm can be counted with `calls_of`."""
    return EvaluationLab(tmp_path).prepare(arm=COUNTING)


def calls_of(lab: EvaluationLab) -> int:
    """How many answers the arm gave, by their numbers; a replay has that of its original."""
    landed = lab.select("SELECT DISTINCT stop_reason FROM captures")
    numbers = {row["stop_reason"] for row in landed}
    for path in (lab.warehouse / "captures").glob("*/*.json"):
        numbers |= set(re.findall(r'"stop_reason":"([0-9a-f]{16})"', path.read_text()))
    return len(numbers)


def stop_after(lab: EvaluationLab, answers: int) -> str:
    """Run until so many answers have finished, land them, and give the run's id."""
    started = lab.start(
        on_progress=lambda progress: started.run.stop() if progress.done >= answers else None
    )
    execute_locally(started, concurrency=1)
    report = finish_run(started).report
    assert report.status == "interrupted"
    return report.run_id


def test_run_twice_executes_twice(counted: EvaluationLab) -> None:
    """Cold is the default: a second run looks nothing up."""
    first, second = counted.run().report, counted.run().report

    assert calls_of(counted) == 24
    assert (first.counts.executed, second.counts.executed) == (12, 12)
    assert (second.counts.replayed, second.evidence) == (0, "executed")
    assert counted.select(
        "SELECT evidence, count(*) AS n, count(DISTINCT key) AS keys FROM captures GROUP BY ALL"
    ) == [{"evidence": "executed", "n": 24, "keys": 12}]


def test_reuse_of_all_answers_is_a_replay_and_exits_4(counted: EvaluationLab) -> None:
    """Asked to, a run replays what is there, asks nothing, and claims nothing."""
    first = counted.run().report
    second = counted.run("reuse").report

    assert calls_of(counted) == 15
    assert (second.counts.executed, second.counts.replayed) == (3, 9)
    assert (second.verdict, second.evidence, second.exit_code) == ("replayed", "mixed", 4)
    assert second.arms[-1].replayed_from == [first.run_id]
    assert second.arms[-1].measures == first.arms[-1].measures


def test_replay_of_a_replay_leads_back_to_the_run_that_executed(counted: EvaluationLab) -> None:
    """The chain has one link, however often an answer is replayed; it keeps its own date."""
    first = counted.run().report.run_id
    counted.run("reuse")
    third = counted.run("reuse").report.run_id

    rows = counted.select("SELECT DISTINCT source_run_id FROM captures WHERE run_id = ?", third)
    dates = counted.select("SELECT DISTINCT key, captured_at FROM captures")
    origins = {row["source_run_id"] for row in rows} - {None}
    assert origins < {row["run_id"] for row in counted.select("SELECT run_id FROM runs")}
    assert first in origins
    assert third not in origins
    assert len(dates) == calls_of(counted) == 18


def test_reuse_takes_the_newest_executed_answer(counted: EvaluationLab) -> None:
    """Of two executions the later one is replayed."""
    counted.run()
    second = counted.run().report.run_id

    assert counted.run("reuse").report.arms[-1].replayed_from == [second]


def test_reuse_of_some_answers_is_mixed_and_counts_both(counted: EvaluationLab) -> None:
    """A second trial is new, the first is replayed, and the evidence says so."""
    counted.run()
    report = counted.run("reuse", trials=2).report

    assert (report.counts.executed, report.counts.replayed) == (15, 9)
    assert report.evidence == "mixed"
    assert calls_of(counted) == 27


def test_reuse_never_replays_a_failure_of_the_tool(lab: EvaluationLab) -> None:
    """A task that failed is asked again, the others are replayed."""
    failing = """
def answer(query, plain=answer):
    if "item-3 " in query and "/failing/" in os.environ["HOME"]:
        return {"error": "index is not ready"}
    return plain(query)
"""
    lab.write(CONFIG.replace("concurrency = 2", "concurrency = 2\nmax_infra_share = 0.5"))
    lab.write_arm(failing)
    first = lab.run(run_id="failing").report
    second = lab.run("reuse").report

    assert first.counts.infra == 1
    assert (second.counts.executed, second.counts.replayed, second.counts.infra) == (4, 8, 0)
    assert second.arms[-1].measures["exact"].count == 12


def test_reuse_after_a_change_of_the_arm_executes_and_why_names_the_component(
    lab: EvaluationLab,
) -> None:
    """One byte of the adapter makes other keys, and `why` says which part of the key it was."""
    first = lab.run().report.run_id
    lab.write_arm("# one more comment")
    second = lab.run("reuse").report
    found = explain_answer(lab.warehouse, second.run_id, task_id="t0003", arm="reader", trial=0)

    assert (second.counts.executed, second.counts.replayed) == (12, 0)
    assert [other.run_id for other in found.others] == [first]
    assert [d.component for d in found.others[0].differences] == ["artifacts.arm.py"]


def test_reuse_after_a_change_of_gold_still_replays(counted: EvaluationLab) -> None:
    """Gold decides scores, never answers: the same answers are scored anew."""
    counted.run()
    counted.write_tasks(gold=lambda number: ["item-0"])
    counted.freeze(force=True, had_runs=True)
    report = counted.run("reuse").report

    assert (report.counts.executed, report.counts.replayed) == (3, 9)
    assert report.arms[-1].measures["exact"].count == 1


def test_reuse_after_a_task_was_added_replays_the_others(counted: EvaluationLab) -> None:
    """A larger panel asks only what was never asked."""
    counted.run()
    counted.write_tasks(13)
    counted.freeze(force=True, had_runs=True)
    report = counted.run("reuse").report

    assert (report.counts.executed, report.counts.replayed) == (4, 9)


def test_reuse_never_replays_from_a_session_that_made_its_run_invalid(
    tmp_path: Path, new_repository: type[RepositoryBuilder]
) -> None:
    """Answers of a session that changed its corpus must not be laundered by a replay."""
    new_repository("corpus").commit("start", {f"item-{n}": "x" for n in range(12)})
    lab = EvaluationLab(tmp_path).prepare(
        arm="""
def answer(query, plain=answer):
    target = os.path.join(corpus, "item-0")
    with open(target, "a") as file:
        file.write("changed")
    return plain(query)

def say(plain=say, **message):
    plain(**message)
""",
        config=CONFIG.replace(
            'answer = "set"', 'answer = "set"\nrepo = "../corpus"\nbase = "HEAD"'
        ),
    )
    arm = lab.config.parent / "arm.py"
    arm.write_text(
        arm.read_text().replace(
            'if message["type"] == "hello":',
            'if message["type"] == "hello":\n            globals()["corpus"] = message["corpus"]',
        )
    )
    first = lab.run().report
    second = lab.run("reuse").report

    assert (first.verdict, first.exit_code) == ("invalid", 5)
    assert (second.counts.executed, second.counts.replayed) == (12, 0)


def test_resume_of_a_stopped_run_ends_with_exactly_the_planned_rows(
    counted: EvaluationLab,
) -> None:
    """What finished is kept and counted, the rest is asked, under the same run id."""
    run_id = stop_after(counted, 5)
    kept = counted.select("SELECT count(*) AS n FROM captures")[0]["n"]
    report = counted.run("resume", resume=run_id[:15]).report

    assert report.run_id == run_id
    assert kept >= 5
    assert (report.counts.executed, report.counts.replayed) == (12, 0)
    assert report.counts.resumed == kept
    assert (report.evidence, report.verdict, report.status) == ("executed", "measured", "finished")
    assert counted.select(
        "SELECT evidence, count(*) AS n, count(DISTINCT key) AS keys FROM captures GROUP BY ALL"
    ) == [{"evidence": "executed", "n": 12, "keys": 12}]
    assert not (counted.warehouse / "captures" / run_id).exists()


def test_stopped_run_did_not_run_and_exits_4(lab: EvaluationLab) -> None:
    """Fewer answers than planned are no measurement, whatever they score."""
    run_id = stop_after(lab, 5)

    row = lab.select("SELECT status, verdict, evidence, exit_code FROM runs")[0]
    assert row == {
        "status": "interrupted",
        "verdict": "did_not_run",
        "evidence": "incomplete",
        "exit_code": 4,
    }
    assert lab.run("resume", resume=run_id).report.exit_code == 0


def test_resume_of_a_replaying_run_counts_replayed_answers_as_replayed(
    counted: EvaluationLab,
) -> None:
    """Answers that were replayed before the interruption are not executed answers."""
    counted.run()
    started = counted.start("reuse", trials=2)
    started.abandon()
    report = counted.run("resume", resume=started.run_id).report

    assert (report.counts.executed, report.counts.replayed) == (15, 9)
    assert report.counts.resumed == 3


def test_resume_executes_failures_of_the_tool_again(lab: EvaluationLab) -> None:
    """A failure is no finished answer."""
    flag = lab.root / "mended"
    lab.write_arm(
        f"""
def answer(query, plain=answer):
    return plain(query) if os.path.exists({str(flag)!r}) else {{"error": "index is not ready"}}
"""
    )
    settings = 'concurrency = 2\nmax_infra_share = 1.0\nsandbox = "none"'
    lab.write(CONFIG.replace("concurrency = 2", settings))
    first = lab.run().report
    flag.touch()
    second = lab.run("resume", resume="last").report

    assert (first.counts.infra, second.counts.infra) == (12, 0)
    assert second.run_id == first.run_id
    assert second.arms[-1].measures["exact"].count == 12
    assert lab.select("SELECT count(*) AS n FROM captures") == [{"n": 12}]


def test_resume_of_a_finished_run_says_that_it_is_finished(lab: EvaluationLab) -> None:
    """There is nothing to continue."""
    run_id = lab.run().report.run_id

    with pytest.raises(UsageError, match=f"run {run_id} is finished"):
        lab.start("resume", resume=run_id)
    with pytest.raises(UsageError, match="no run 'last' to continue; no run is unfinished"):
        lab.start("resume", resume="last")


def test_resume_of_an_ambiguous_start_asks_for_more(lab: EvaluationLab) -> None:
    """Two runs of one day share the start of their ids."""
    first, second = stop_after(lab, 3), stop_after(lab, 3)

    with pytest.raises(UsageError, match="is the start of 2 runs"):
        lab.start("resume", resume="20")
    assert lab.run("resume", resume=first).report.run_id == first
    assert lab.run("resume", resume="20").report.run_id == second


def test_resume_with_another_panel_names_both_hashes(lab: EvaluationLab) -> None:
    """A run never mixes two panels."""
    run_id = stop_after(lab, 3)
    before = lab.load().frozen.digest
    lab.write_tasks(13)
    lab.freeze(force=True)

    with pytest.raises(UsageError, match=before) as caught:
        lab.start("resume", resume=run_id)
    assert lab.load().frozen.digest in str(caught.value)
    assert "never mixes two panels" in str(caught.value)


def test_resume_with_another_adapter_names_the_component(lab: EvaluationLab) -> None:
    """A run never mixes two states of an arm."""
    run_id = stop_after(lab, 3)
    lab.write_arm("# changed")

    with pytest.raises(UsageError, match="artifacts of reader changed since"):
        lab.start("resume", resume=run_id)


@pytest.mark.parametrize("answers", [0, 3])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "reader"', 'name = "writer"', "the arms reader, writer changed since"),
        ("adapter =", "timeout_seconds = 5\nadapter =", "the arm reader changed since"),
    ],
)
def test_resume_with_another_configuration_of_the_arms_is_refused(
    lab: EvaluationLab, answers: int, old: str, new: str, message: str
) -> None:
    """Renamed or changed arms are another run, also before the first answer was there."""
    if answers:
        run_id = stop_after(lab, answers)
    else:
        started = lab.start()
        started.abandon()
        run_id = started.run_id
    lab.write(CONFIG.replace(old, new))

    with pytest.raises(UsageError, match=message):
        lab.start("resume", resume=run_id)


def test_resume_of_a_run_that_is_being_written_is_refused(lab: EvaluationLab) -> None:
    """Its lock is held as long as it lives, and no longer."""
    started = lab.start()
    with pytest.raises(UsageError, match="is being written by another program"):
        lab.start("resume", resume=started.run_id)
    started.abandon()

    assert lab.run("resume", resume=started.run_id).report.counts.executed == 12


def test_two_runs_at_once_on_one_warehouse_keep_apart(lab: EvaluationLab) -> None:
    """Each lands its own rows, all of them, and nothing of the other."""
    reports = []

    def run() -> None:
        reports.append(lab.run(trials=2).report)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [report.counts.executed for report in reports] == [24, 24, 24]
    rows = lab.select("SELECT run_id, count(DISTINCT key) AS n FROM captures GROUP BY run_id")
    assert {row["run_id"]: row["n"] for row in rows} == {r.run_id: 24 for r in reports}
    assert [path for path in (lab.warehouse / "captures").iterdir() if path.is_dir()] == []


def test_start_of_a_run_writes_its_manifest_before_anything_is_asked(
    counted: EvaluationLab,
) -> None:
    """A run killed at once can be listed and continued."""
    started = counted.start()
    folder = counted.warehouse / "captures" / started.run_id
    manifest = json.loads((folder / "run.json").read_bytes())
    started.abandon()

    assert manifest["panel_digest"] == counted.load().frozen.digest
    assert manifest["planned"] == {"reader": 12}
    assert (folder / "panel.jsonl").read_bytes() == counted.files.panel.read_bytes()
    assert calls_of(counted) == 0


def test_landing_that_fails_lets_go_of_the_run_and_keeps_the_answers(
    counted: EvaluationLab,
) -> None:
    """Where the tables cannot be written, the answers wait and --resume lands them unasked."""
    started = counted.start()
    execute_locally(started, concurrency=2)
    table = counted.warehouse / "captures" / f"{started.run_id}.parquet"
    table.mkdir()
    with pytest.raises(ColdrunError, match="cannot land run"):
        finish_run(started)
    table.rmdir()
    report = counted.run("resume", resume=started.run_id).report

    assert calls_of(counted) == 12
    assert (report.counts.executed, report.counts.resumed) == (12, 12)
    assert not list(counted.warehouse.glob("*/.*.tmp"))


def test_run_that_is_too_fast_did_not_run(lab: EvaluationLab) -> None:
    """Faster than the registered minimum nothing can have run."""
    lab.write(CONFIG + "\n[measure]\nminimum_seconds_per_answer = 30.0\n")
    lab.freeze(force=True)
    report = lab.run().report

    assert (report.verdict, report.evidence, report.exit_code) == ("did_not_run", "incomplete", 4)
    assert "below the registered minimum of 30 s nothing can have run" in report.reasons[0]


def test_revision_to_resume_is_the_commit_that_was_measured(
    tmp_path: Path, new_repository: Callable[..., RepositoryBuilder]
) -> None:
    """Started at one commit, a run is continued there, although HEAD has moved."""
    product = new_repository("product")
    first = product.commit("first", {"tool.py": "1"})
    config = CONFIG + f"\n[product]\nrepo = {str(product.path)!r}\n"
    lab = EvaluationLab(tmp_path).prepare(config=config)
    evaluation = lab.load()
    request = RunRequest(warehouse=lab.warehouse)
    started = start_run(
        evaluation, request, point=prepare_evaluation_point(evaluation, revision=None)
    )
    started.abandon()
    product.commit("second", {"tool.py": "2"})
    resumed = replace(request, mode="resume", resume=started.run_id)

    assert revision_to_resume(resumed) == first
    with pytest.raises(UsageError, match=f"the point, from {first} .* changed since"):
        start_run(evaluation, resumed, point=prepare_evaluation_point(evaluation, None))
    point = prepare_evaluation_point(evaluation, revision_to_resume(resumed))
    again = start_run(evaluation, resumed, point=point)
    execute_locally(again, concurrency=2)
    report = finish_run(again).report
    assert report.point is not None
    assert (report.point.commit, report.run_id) == (first, started.run_id)


def test_runs_of_one_second_sort_as_they_were_started() -> None:
    """`last` goes by the start, and so does whoever sorts ids."""
    begun = dt.datetime(2026, 8, 1, 9, 30, 12, tzinfo=dt.UTC)
    ids = [new_run_id(begun + dt.timedelta(microseconds=step)) for step in range(0, 999_999, 9973)]

    assert ids == sorted(ids)
    assert all(RUN_ID.fullmatch(run_id) for run_id in ids)
    assert len({new_run_id(begun) for _ in range(8)}) > 1
