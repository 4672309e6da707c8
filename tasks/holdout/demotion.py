"""What the lock remembers of tasks that were read, so that they are never sealed again. Pure.

Ids are not enough: another `query`, or another id in a file, makes new ids of the same work. What
no setting changes is when the work was done. So the lock keeps one moment besides the ids: the end
of the range that was read. Nothing dated up to it is sealed again, drawn in that opening or not.
It tells nobody anything, since the tasks are dev by then, and mining anew cannot get around it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from coldrun.tasks.freeze.sample import UNDATED, task_instant
from coldrun.tasks.lib.records import Task
from coldrun.tasks.mine.candidates import make_task_id


def describe_reading(tasks: Sequence[Task], *, range_end: dt.datetime | None) -> dict[str, Any]:
    """What is to be remembered of tasks that were read, as JSON values.

    `tasks` are their ids and the hashes of their queries, `until` is the end of the range or the
    newest of them, whichever is later; None where nothing has a date.
    """
    instants = [task_instant(task) for task in tasks]
    until = max([*instants, *([range_end] if range_end else [])], default=UNDATED)
    return {
        "tasks": sorted({name for task in tasks for name in _names(task)}),
        "until": None if until == UNDATED else until.isoformat(timespec="seconds"),
    }


def join_readings(readings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is remembered of several readings: all names, the latest moment.

    One from before `until` was kept says nothing of it.
    """
    moments = [found for reading in readings if (found := reading.get("until")) is not None]
    return {
        "tasks": sorted({name for reading in readings for name in reading["tasks"]}),
        "until": max(moments, key=dt.datetime.fromisoformat, default=None),
    }


def find_read(tasks: Sequence[Task], reading: Mapping[str, Any]) -> tuple[Task, ...]:
    """Those of `tasks` that were read, or are no later than what was read."""
    names = set(reading["tasks"])
    found = reading.get("until")
    until = None if found is None else dt.datetime.fromisoformat(found)
    return tuple(
        task
        for task in tasks
        if not names.isdisjoint(_names(task))
        or (until is not None and UNDATED < task_instant(task) <= until)
    )


def _names(task: Task) -> tuple[str, str]:
    """The id, and the one that mining would give: a file may call the same question another."""
    return task.id, make_task_id(task.query)
