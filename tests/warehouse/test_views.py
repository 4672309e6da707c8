"""Each view on a tiny warehouse made by hand."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from duckdb import DuckDBPyConnection as Connection

from coldrun.warehouse.reader import connect, select_rows
from coldrun.warehouse.writer import prepare_warehouse, write_rows

RUN: dict[str, Any] = {
    "name": "toy",
    "status": "finished",
    "wall_seconds": 1.0,
    "panel_digest": "sha256:p",
    "verdict": "measured",
    "evidence": "executed",
    "exit_code": 0,
    "product_repo": "tool",
    "product_commit": "c" * 40,
    "product_tree": "d" * 40,
    "is_dirty": False,
}

CAPTURE: dict[str, Any] = {
    "arm": "tool",
    "role": "candidate",
    "trial": 0,
    "evidence": "executed",
    "is_resumed": False,
    "captured_at": dt.datetime(2026, 8, 1, tzinfo=dt.UTC),
    "status": "answered",
    "answer_seconds": 2.0,
    "degraded": [],
    "is_identified": True,
    "raw": "an answer",
    "key_parts": [("arm", "{}"), ("artifacts", "{}")],
}

SCORE: dict[str, Any] = {
    "panel_digest": "sha256:p",
    "product_commit": "c" * 40,
    "product_tree": "d" * 40,
    "arm": "tool",
    "role": "candidate",
    "kind": "command",
    "measure": "hit@5",
    "cutoff": 5,
    "trials": 1,
    "n": 3,
    "evidence": "executed",
    "measured_nothing": False,
    "method_version": "1",
}

KEYS = ["a" * 64, "b" * 64, "c" * 64]


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    """Two runs of one panel, r2 replaying one answer and with one failure of the tool."""
    prepare_warehouse(tmp_path)
    for number, run_id in enumerate(("r1", "r2")):
        started = dt.datetime(2026, 8, 1 + number, tzinfo=dt.UTC)
        write_rows(tmp_path, "runs", run_id, [{**RUN, "run_id": run_id, "started_at": started}])
    write_rows(tmp_path, "captures", "r1", captures_of("r1"))
    write_rows(
        tmp_path,
        "captures",
        "r2",
        captures_of(
            "r2",
            {"evidence": "replayed", "source_run_id": "r1", "answer_seconds": 1.0},
            {"raw": "another answer", "answer_seconds": 3.0},
            {"status": "infra", "raw": None, "answer_seconds": 60.0},
        ),
    )
    write_rows(
        tmp_path,
        "attempts",
        "r2",
        [
            {"run_id": "r2", "key": KEYS[0], "number": 1, "input_tokens": 500},
            {"run_id": "r2", "key": KEYS[1], "number": 1, "input_tokens": 7, "output_tokens": 2},
            {"run_id": "r2", "key": KEYS[1], "number": 2, "input_tokens": 10},
            {"run_id": "r2", "key": KEYS[2], "number": 1, "cache_read_tokens": 4},
        ],
    )
    write_rows(tmp_path, "scores", "r1", scores_of("r1", [1.0, 0.0, 0.5]))
    write_rows(tmp_path, "scores", "r2", scores_of("r2", [1.0, 1.0, 0.0]))
    return connect(tmp_path)


def captures_of(run_id: str, *changes: dict[str, Any]) -> list[dict[str, Any]]:
    padded = [*changes, *({} for _ in range(3 - len(changes)))]
    return [
        {**CAPTURE, "run_id": run_id, "key": key, "task_id": f"t{number}", **change}
        for number, (key, change) in enumerate(zip(KEYS, padded, strict=True))
    ]


def scores_of(run_id: str, values: list[float]) -> list[dict[str, Any]]:
    return [
        {**SCORE, "run_id": run_id, "task_id": f"t{number}", "value": value, "is_infra": value == 0}
        for number, value in enumerate(values)
    ]


def test_answer_costs_add_up_to_the_ledger_of_an_arm(connection: Connection) -> None:
    """Every attempt of an executed answer is there, a failed one too; replays are told apart."""
    row = select_rows(
        connection,
        """
        SELECT
            count(*) FILTER (evidence = 'executed') AS executed,
            count(*) FILTER (evidence = 'replayed') AS replayed,
            count(*) FILTER (status = 'infra') AS infra,
            sum(answer_seconds) FILTER (evidence = 'executed') AS answer_seconds,
            sum(attempts) FILTER (evidence = 'executed') AS attempts,
            sum(input_tokens) FILTER (evidence = 'executed') AS input_tokens,
            sum(cache_read_tokens) FILTER (evidence = 'executed') AS cache_read_tokens,
            sum(cache_write_tokens) AS cache_write_tokens
        FROM answer_costs WHERE run_id = 'r2'
        """,
    )[0]

    assert (row["executed"], row["replayed"], row["infra"]) == (2, 1, 1)
    assert (row["answer_seconds"], row["attempts"], row["input_tokens"]) == (63.0, 3, 17)
    assert (row["cache_read_tokens"], row["cache_write_tokens"]) == (4, None)


def test_answer_costs_are_priced_with_the_snapshot_of_their_run(tmp_path: Path) -> None:
    """Kind by kind; null where a price is missing or nothing was said, 0 where it was replayed."""
    prepare_warehouse(tmp_path)
    models = {"m": {"input": 3.0, "output": 15.0}, 'a/b~"c': {"input": 1.0, "cache_read": 0.5}}
    snapshot = {"date": "2026-11-30", "currency": "USD", "models": models}
    manifest = {"config": {"prices": {"digest": "sha256:d", "snapshot": snapshot}}}
    run = {**RUN, "run_id": "r1", "manifest": json.dumps(manifest)}
    write_rows(tmp_path, "runs", "r1", [run])
    write_rows(tmp_path, "runs", "r2", [{**RUN, "run_id": "r2", "manifest": "{}"}])
    replayed = {"evidence": "replayed", "source_run_id": "r0"}
    write_rows(tmp_path, "captures", "r1", captures_of("r1", {}, {}, replayed))
    write_rows(tmp_path, "captures", "r2", captures_of("r2")[:1])
    rows = [
        {"key": KEYS[0], "number": 1, "model": "m", "input_tokens": 1000, "output_tokens": 10},
        {"key": KEYS[0], "number": 1, "model": 'a/b~"c', "cache_read_tokens": 2000},
        {"key": KEYS[0], "number": 2, "model": "m", "input_tokens": 500},
        {"key": KEYS[1], "number": 1, "model": "m", "cache_read_tokens": 7},
        {"key": KEYS[2], "number": 1, "model": "m", "input_tokens": 1000},
    ]
    write_rows(tmp_path, "attempts", "r1", [{"run_id": "r1", **row} for row in rows])
    write_rows(tmp_path, "attempts", "r2", [{"run_id": "r2", **rows[0]}])

    found = select_rows(
        connect(tmp_path),
        "SELECT attempts, input_tokens, cost, answer_cost, prices_date FROM answer_costs "
        "ORDER BY run_id, task_id",
    )

    assert [tuple(row.values()) for row in found] == [
        (2, 1500, pytest.approx(0.00565), pytest.approx(0.00565), "2026-11-30"),
        (1, None, None, None, "2026-11-30"),
        (1, 1000, 0.0, pytest.approx(0.003), "2026-11-30"),
        (1, 1000, None, None, None),
    ]


def test_arm_scores_are_means_over_tasks_with_their_denominator(connection: Connection) -> None:
    """One row per run, arm and measure, oldest run first."""
    rows = select_rows(connection, "SELECT * FROM arm_scores")

    assert [(row["run_id"], row["value"], row["total"], row["n"]) for row in rows] == [
        ("r1", 0.5, 1.5, 3),
        ("r2", pytest.approx(2 / 3), 2.0, 3),
    ]
    assert [row["infra_tasks"] for row in rows] == [1, 1]
    assert rows[0]["name"] == "toy"


def test_flips_are_the_tasks_whose_score_differs(connection: Connection) -> None:
    """From one run to the other, a task goes up or down; equal ones are no row."""
    rows = select_rows(
        connection,
        "SELECT task_id, value_a, value_b, direction FROM flips "
        "WHERE run_a = 'r1' AND run_b = 'r2' ORDER BY task_id",
    )

    assert rows == [
        {"task_id": "t1", "value_a": 0.0, "value_b": 1.0, "direction": 1},
        {"task_id": "t2", "value_a": 0.5, "value_b": 0.0, "direction": -1},
    ]


def test_noise_is_equal_keys_with_different_executed_answers(connection: Connection) -> None:
    """A replay is no second execution, and a failure is no answer."""
    rows = select_rows(connection, "SELECT * FROM noise")

    assert rows == [
        {"key": KEYS[1], "arm": "tool", "task_id": "t1", "executions": 2, "different_answers": 2}
    ]


def test_arm_runs_count_how_the_answers_came_to_be(connection: Connection) -> None:
    """Equal questions of equal code have one identity, however they were answered."""
    rows = select_rows(connection, "SELECT * FROM arm_runs ORDER BY run_id")

    assert [(row["executed"], row["replayed"], row["infra"]) for row in rows] == [
        (3, 0, 0),
        (2, 1, 1),
    ]
    assert rows[1]["source_run_ids"] == ["r1"]
    assert rows[0]["identity"] == rows[1]["identity"]


def test_trend_has_the_newest_usable_run_of_each_commit(connection: Connection) -> None:
    """One row per commit, arm and measure; later executed runs go before earlier ones."""
    rows = select_rows(connection, "SELECT run_id, product_commit, measure, value FROM trend")

    assert [tuple(row.values()) for row in rows] == [
        ("r2", "c" * 40, "hit@5", pytest.approx(2 / 3))
    ]
