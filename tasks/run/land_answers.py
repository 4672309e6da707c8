"""Landing: the captures of a run packed into one Parquet file per table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.records import Task
from coldrun.tasks.lib.table_record import to_row
from coldrun.tasks.run.capture import Capture
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
    }
