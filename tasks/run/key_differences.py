"""Why an answer was executed or replayed: its key against the keys of the same question."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.safe_json import BadJsonError, load_json
from coldrun.tasks.run.capture_key import differing_components
from coldrun.warehouse.reader import connect, find_run_id, select_rows

_COPIED = ("key", "evidence", "status", "reason", "source_run_id", "is_identified")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One component in which two keys differ, as canonical JSON text."""

    component: str
    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherAnswer:
    """The same question in another run. No differences: the keys are equal, a hit."""

    run_id: str
    captured_at: str
    evidence: str
    status: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One answer and its counterparts, newest first."""

    run_id: str
    task_id: str
    arm: str
    trial: int
    key: str
    evidence: str
    status: str
    reason: str | None
    source_run_id: str | None
    captured_at: str
    is_identified: bool
    others: tuple[OtherAnswer, ...]


def explain_answer(warehouse: Path, run: str, *, task_id: str, arm: str, trial: int) -> Explanation:
    """Compare the key of one answer with those of the same task, arm and trial in other runs.

    Raises:
        UsageError: There is no such answer; the message names what the run has.
    """
    connection = connect(warehouse, only=("runs", "captures"), leaves_out=True)
    run_id = find_run_id(connection, run)
    rows = select_rows(
        connection,
        "SELECT run_id, key, evidence, status, reason, source_run_id, captured_at, is_identified, "
        "key_parts FROM captures WHERE task_id = ? AND arm = ? AND trial = ? "
        "ORDER BY captured_at DESC, run_id DESC",
        [task_id, arm, trial],
    )
    mine = next((row for row in rows if row["run_id"] == run_id), None)
    if mine is None:
        raise _no_answer(connection, run_id, task_id, arm, trial)
    return Explanation(
        run_id=run_id,
        task_id=task_id,
        arm=arm,
        trial=trial,
        captured_at=mine["captured_at"].isoformat(),
        **{name: mine[name] for name in _COPIED},
        others=tuple(_compare(mine, row) for row in rows if row["run_id"] != run_id),
    )


def _compare(mine: Mapping[str, Any], row: Mapping[str, Any]) -> OtherAnswer:
    here, there = dict(mine["key_parts"]), dict(row["key_parts"])
    return OtherAnswer(
        run_id=row["run_id"],
        captured_at=row["captured_at"].isoformat(),
        evidence=row["evidence"],
        status=row["status"],
        differences=tuple(
            difference
            for name in differing_components(here, there)
            for difference in _narrow(name, here.get(name, ""), there.get(name, ""))
        ),
    )


def _narrow(name: str, here: str, there: str) -> Iterator[Difference]:
    """The entries of a component that differ, where it is a table; else the component whole."""
    try:
        mine, other = load_json(here or "null"), load_json(there or "null")
    except BadJsonError:
        mine = other = None
    if not (isinstance(mine, dict) and isinstance(other, dict)):
        yield Difference(component=name, here=here, there=there)
        return
    for key in sorted({*mine, *other}):
        if mine.get(key) != other.get(key):
            yield Difference(
                component=f"{name}.{key}",
                here=json.dumps(mine.get(key), ensure_ascii=False),
                there=json.dumps(other.get(key), ensure_ascii=False),
            )


def _no_answer(connection: Any, run_id: str, task_id: str, arm: str, trial: int) -> UsageError:
    rows = select_rows(
        connection,
        "SELECT DISTINCT arm, max(trial) AS trials, min(task_id) AS example, "
        "bool_or(task_id = ?) AS has_task FROM captures WHERE run_id = ? GROUP BY arm ORDER BY arm",
        [task_id, run_id],
    )
    arms = [row["arm"] for row in rows]
    if arm not in arms:
        return UsageError(
            f"run {run_id} has no answers of an arm {arm!r}; it has {', '.join(arms) or 'none'} "
            "(nulls are computed, never asked)"
        )
    if not any(row["has_task"] for row in rows):
        return UsageError(
            f"run {run_id} has no task {task_id!r}; `coldrun show {run_id}` lists them "
            f"(e.g. {rows[0]['example']})"
        )
    return UsageError(f"run {run_id} has no trial {trial} of {arm} on {task_id}")
