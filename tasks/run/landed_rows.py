"""The rows of landed runs: packed into Parquet files, read back, looked up by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.records import GoldItem, Task
from coldrun.tasks.lib.table_record import to_row
from coldrun.tasks.run.capture import Capture, capture_from_row
from coldrun.tasks.run.manifest import Manifest
from coldrun.tasks.run.run_record import EarlierRuns
from coldrun.warehouse.digests import verify_run
from coldrun.warehouse.reader import connect, select_rows
from coldrun.warehouse.writer import prepare_warehouse, write_rows


def land_answers(
    warehouse: Path,
    run_id: str,
    *,
    tasks: Sequence[Task],
    captures: Iterable[Capture],
    sessions: Sequence[Mapping[str, Any]],
) -> None:
    """Pack tasks, answers, attempts, events and sessions. Landing again replaces the same rows.

    Answers come last: once they are there others may reuse them, and what they cost, and whether
    their session was in order, must be there by then.

    Raises:
        StorageError: The warehouse cannot be written; the capture files stay.
    """
    prepare_warehouse(warehouse)
    found = list(captures)
    rows: dict[str, list[Mapping[str, Any]]] = {
        "tasks": [task_row(run_id, task) for task in tasks],
        "sessions": list(sessions),
        "attempts": [row for capture in found for row in capture.attempt_rows()],
        "events": [row for capture in found for row in capture.event_rows()],
        "captures": [to_row(capture) for capture in found],
    }
    for table, values in rows.items():
        write_rows(warehouse, table, run_id, values)


def task_row(run_id: str, task: Task) -> dict[str, Any]:
    """The row of the `tasks` table."""
    return {
        "run_id": run_id,
        "task_id": task.id,
        "query": task.query,
        "answer": task.answer,
        "date": task.date,
        "base": task.base,
        "gold": [gold.item for gold in task.gold],
        "grades": [gold.grade for gold in task.gold],
        "provenances": [gold.provenance for gold in task.gold],
        "strata": list(task.strata.items()),
        "parts": list(task.parts),
    }


def find_reusable(warehouse: Path, keys: set[str]) -> dict[str, Capture]:
    """The newest executed answer for each of the keys, over all landed runs.

    Failures are never reused, nor answers of arms that cannot be identified, nor those of a
    session that made its run invalid, nor replayed rows: a replay leads back to the run that
    executed.
    """
    if not keys:
        return {}
    connection = connect(warehouse, only=("captures", "attempts", "events", "sessions"))
    connection.execute("CREATE TABLE wanted (key VARCHAR)")
    connection.execute("INSERT INTO wanted SELECT unnest(?)", [sorted(keys)])
    rows = select_rows(
        connection,
        "SELECT c.* FROM captures c SEMI JOIN wanted w ON c.key = w.key "
        "WHERE evidence = 'executed' AND status <> 'infra' AND is_identified AND NOT EXISTS ("
        "SELECT 1 FROM sessions s WHERE s.run_id = c.run_id AND s.session_id = c.session_id "
        "AND len(s.invalid) > 0) "
        "QUALIFY row_number() OVER (PARTITION BY c.key ORDER BY captured_at DESC, run_id DESC) = 1",
    )
    for run_id in sorted({row["run_id"] for row in rows}):
        verify_landed(warehouse, run_id)
    return {capture.key: capture for capture in _with_details(connection, rows)}


def verify_landed(warehouse: Path, run_id: str) -> None:
    """Refuse a landed run that was edited.

    Raises:
        EditedError: Names the file.
    """
    connection = connect(warehouse, only=("runs",), runs=[run_id])
    for row in select_rows(connection, "SELECT * FROM runs WHERE run_id = ?", [run_id]):
        verify_run(warehouse, row)


def read_landed(warehouse: Path, run_id: str) -> list[Capture]:
    """All landed captures of a run."""
    connection = connect(
        warehouse, only=("captures", "attempts", "events"), runs=[run_id], leaves_out=True
    )
    rows = select_rows(
        connection,
        "SELECT * FROM captures WHERE run_id = ? ORDER BY arm, trial, task_id",
        [run_id],
    )
    return _with_details(connection, rows)


def read_landed_tasks(warehouse: Path, run_id: str) -> tuple[Task, ...]:
    """The panel that a landed run asked, in panel order."""
    connection = connect(warehouse, only=("tasks",), runs=[run_id], leaves_out=True)
    return select_tasks(connection, run_id)


def select_tasks(connection: Any, run_id: str) -> tuple[Task, ...]:
    """The same through a connection that has the table `tasks`, for whoever asks for many runs."""
    rows = select_rows(
        connection, "SELECT * FROM tasks WHERE run_id = ? ORDER BY task_id", [run_id]
    )
    return tuple(
        Task(
            id=row["task_id"],
            query=row["query"],
            answer=row["answer"],
            date=row["date"],
            base=row["base"],
            gold=tuple(
                GoldItem(item=item, grade=grade, provenance=provenance)
                for item, grade, provenance in zip(
                    row["gold"], row["grades"], row["provenances"], strict=True
                )
            ),
            strata=dict(row["strata"]),
            parts=tuple(row["parts"] or ()),
        )
        for row in rows
    )


def read_landed_sessions(warehouse: Path, run_id: str) -> list[dict[str, Any]]:
    """The session rows of a landed run."""
    return select_rows(
        connect(warehouse, only=("sessions",), runs=[run_id], leaves_out=True),
        "SELECT * FROM sessions WHERE run_id = ? ORDER BY session_id",
        [run_id],
    )


def find_earlier(warehouse: Path, manifest: Manifest) -> dict[str, EarlierRuns]:
    """The earlier executed runs of each arm on the same panel, oldest first."""
    rows = select_rows(
        connect(warehouse, only=("runs", "captures", "scores", "arm_scores"), leaves_out=True),
        "SELECT s.arm, s.value, s.run_id, median(c.answer_seconds) AS median_seconds "
        "FROM arm_scores s JOIN captures c ON c.run_id = s.run_id AND c.arm = s.arm "
        "WHERE s.panel_digest = ? AND s.measure = ? AND s.evidence = 'executed' "
        "AND s.started_at < ?::TIMESTAMPTZ AND c.status <> 'infra' "
        "GROUP BY s.arm, s.value, s.run_id, s.started_at ORDER BY s.started_at, s.run_id",
        [manifest.panel_digest, manifest.config.primary, manifest.started_at],
    )
    by_arm: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_arm[row["arm"]].append(row)
    return {
        arm: EarlierRuns(
            scores=[row["value"] for row in found],
            median_seconds=[row["median_seconds"] for row in found],
        )
        for arm, found in by_arm.items()
    }


def _with_details(connection: Any, rows: list[dict[str, Any]]) -> list[Capture]:
    attempts = _group(connection, "attempts", "number", rows)
    events = _group(connection, "events", "position", rows)
    return [
        capture_from_row(
            row, attempts[row["run_id"], row["key"]], events[row["run_id"], row["key"]]
        )
        for row in rows
    ]


def _group(
    connection: Any, table: str, order: str, rows: list[dict[str, Any]]
) -> Mapping[tuple[str, str], list[Mapping[str, Any]]]:
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    run_ids = sorted({row["run_id"] for row in rows})
    keys = {(row["run_id"], row["key"]) for row in rows}
    found = select_rows(
        connection,
        f"SELECT * FROM {table} WHERE run_id IN (SELECT unnest(?)) "  # noqa: S608 - fixed names
        f"ORDER BY run_id, key, {order}",
        [run_ids],
    )
    for row in found:
        if (row["run_id"], row["key"]) in keys:
            grouped[row["run_id"], row["key"]].append(row)
    return grouped
