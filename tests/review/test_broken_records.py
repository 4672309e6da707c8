"""Runs that were killed, resumed, replayed, damaged or computed again: what is said of them."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.judge.load_run import load_report
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.report import run_words as words
from coldrun.tasks.run.landed_rows import land_answers
from coldrun.tasks.run.run_lifecycle import execute_locally
from coldrun.warehouse.damage import UnreadableFileWarning
from coldrun.warehouse.writer import write_rows
from tests.evaluations import CONFIG, EvaluationLab


def test_answers_land_after_all_that_vouches_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program killed while landing must not leave answers that --reuse takes without a session
    that was found invalid, or without what they cost.
    """
    order: list[str] = []

    def write(root: Path, table: str, run_id: str, rows: Any) -> Path:
        order.append(table)
        return write_rows(root, table, run_id, rows)

    monkeypatch.setattr("coldrun.tasks.run.landed_rows.write_rows", write)
    land_answers(tmp_path, "run", tasks=(), captures=(), sessions=())

    assert order[-1] == "captures"


def test_a_recomputed_report_says_when_it_differs_from_what_was_said(tmp_path: Path) -> None:
    lab = EvaluationLab(tmp_path).prepare()
    run_id = lab.run().report.run_id
    path = lab.warehouse / "runs" / f"{run_id}.parquet"
    table = pq.read_table(path)
    column = table.schema.get_field_index("verdict")
    pq.write_table(table.set_column(column, table.schema.field(column), [["inconclusive"]]), path)

    report = load_report(lab.warehouse, run_id).report

    assert any("inconclusive" in text and "measured" in text for text in report.warnings)


def test_the_time_of_a_resumed_run_is_that_of_all_its_legs(tmp_path: Path) -> None:
    """And the report says when it was resumed."""
    lab = EvaluationLab(tmp_path).prepare()
    run_id = _interrupt(lab)
    first = load_report(lab.warehouse, run_id).report

    report = lab.run("resume", resume=run_id).report

    assert len(first.legs) == 1
    assert report.legs[0] == first.legs[0]
    assert report.wall_seconds == sum(leg.seconds for leg in report.legs)
    resumed = f"{report.legs[1].started_at[:19]}Z"
    assert words.run_line(report).endswith(f" s in 2 parts (resumed {resumed})")
    assert load_report(lab.warehouse, run_id).report == report
    (row,) = lab.select("SELECT started_at, finished_at, wall_seconds, legs FROM runs")
    assert row["wall_seconds"] == report.wall_seconds
    assert row["started_at"] < row["legs"][1]["started_at"] < row["finished_at"]


def test_a_leg_that_was_killed_counts_to_its_last_answer(tmp_path: Path) -> None:
    """Nobody knows how long it lived after that, and the report says so."""
    lab = EvaluationLab(tmp_path).prepare()
    started = lab.start()
    execute_locally(started, concurrency=1)
    last = max(capture.captured_at for capture in started.run.done.values())
    started.abandon()

    report = lab.run("resume", resume=started.run_id).report

    lived = dt.datetime.fromisoformat(last) - dt.datetime.fromisoformat(report.started_at)
    assert [leg.was_killed for leg in report.legs] == [True, False]
    assert report.legs[0].seconds == lived.total_seconds()
    assert " · at least " in words.run_line(report)
    assert "; 1 killed, counted to the last answer)" in words.run_line(report)


def test_a_run_begun_before_legs_were_recorded_is_continued(tmp_path: Path) -> None:
    """Its first leg began with the run."""
    lab = EvaluationLab(tmp_path).prepare()
    run_id = _interrupt(lab)
    for path in (lab.warehouse / "captures" / run_id).glob("leg-*.json"):
        path.unlink()

    report = lab.run("resume", resume=run_id).report

    assert [leg.was_killed for leg in report.legs] == [True, False]
    assert report.legs[0].started_at == report.started_at


def test_a_row_from_before_legs_were_recorded_says_what_its_time_is(tmp_path: Path) -> None:
    """Then it is that of the last leg alone."""
    lab = EvaluationLab(tmp_path).prepare()
    run_id = lab.run("resume", resume=_interrupt(lab)).report.run_id
    path = lab.warehouse / "runs" / f"{run_id}.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["legs"]), path)

    report = load_report(lab.warehouse, run_id).report

    assert report.legs == []
    assert "since it was resumed" in words.run_line(report)
    assert lab.invoke("runs").returncode == 0


def test_sessions_whose_end_nobody_saw_are_named(tmp_path: Path) -> None:
    """A killed run's sessions were not looked at: what they did to their corpus is unknown."""
    lab = EvaluationLab(tmp_path).prepare()
    run_id = _interrupt(lab)
    (session,) = (lab.warehouse / "captures" / run_id).glob("session-*.json")
    values = json.loads(session.read_text())
    session.write_text(json.dumps(values | {"restarts": None, "log": None}))

    report = lab.run("resume", resume=run_id).report

    assert any("not looked at" in text for text in report.warnings)


def test_a_run_is_not_resumed_under_another_lock(tmp_path: Path) -> None:
    """Also when it was killed before its first answer, so that no key tells."""
    lab = EvaluationLab(tmp_path).prepare()
    started = lab.start()
    started.abandon()
    lab.write(CONFIG + '\n[measure]\nprimary = "f1"\n')
    lab.freeze(force=True)

    with pytest.raises(UsageError, match="lock"):
        lab.start("resume", resume=started.run_id)


def test_a_damaged_capture_is_executed_again(tmp_path: Path) -> None:
    """A full disk or a power cut may leave an empty file under a right name."""
    lab = EvaluationLab(tmp_path).prepare()
    run_id = _interrupt(lab)
    folder = lab.warehouse / "captures" / run_id
    damaged = next(path for path in folder.glob("*.json") if len(path.stem) == 64)
    damaged.write_bytes(b"")

    with pytest.warns(UnreadableFileWarning, match=f"{damaged} is damaged"):
        report = lab.run("resume", resume=run_id).report

    assert (report.counts.executed, report.verdict) == (12, "measured")


def test_a_replay_of_a_resumed_answer_is_not_resumed_itself(tmp_path: Path) -> None:
    lab = EvaluationLab(tmp_path).prepare()
    lab.run("resume", resume=_interrupt(lab))

    report = lab.run("reuse").report

    assert (report.counts.replayed, report.counts.resumed) == (9, 0)
    assert "resumed" not in words.first_line(report)


def _interrupt(lab: EvaluationLab) -> str:
    started = lab.start(
        on_progress=lambda progress: started.run.stop() if progress.done >= 5 else None
    )
    execute_locally(started, concurrency=1)
    return finish_run(started).report.run_id
