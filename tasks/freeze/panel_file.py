"""The frozen panel: canonical JSON Lines, sorted by id, hashed as bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import GoldItem, Task


def panel_to_bytes(tasks: Sequence[Task]) -> bytes:
    """The panel's canonical bytes: one JSON object a line, sorted by id, UTF-8, LF."""
    ids = [task.id for task in tasks]
    if len(set(ids)) < len(ids):
        repeated = next(task_id for task_id in ids if ids.count(task_id) > 1)
        raise PanelError(f"two tasks have the id {repeated!r}; ids must be unique")
    lines = [canonical_json(_task_to_values(task)) for task in sorted(tasks, key=lambda t: t.id)]
    return b"".join(line + b"\n" for line in lines)


def panel_from_bytes(data: bytes) -> tuple[Task, ...]:
    """The tasks in a panel's bytes, in panel order."""
    try:
        return tuple(_task_from_values(json.loads(line)) for line in data.splitlines())
    except (ValueError, KeyError, TypeError) as error:
        raise PanelError(f"the panel is not readable ({error}); freeze it again") from None


def _task_to_values(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "query": task.query,
        "answer": task.answer,
        "date": task.date,
        "base": task.base,
        "gold": [
            {"item": gold.item, "grade": gold.grade, "provenance": gold.provenance}
            for gold in sorted(task.gold, key=lambda gold: gold.item)
        ],
        "strata": dict(task.strata),
    }


def _task_from_values(values: dict[str, Any]) -> Task:
    gold = tuple(GoldItem(**item) for item in values.pop("gold"))
    return Task(**values, gold=gold)
