"""Dev and sealed: the newest tasks are sealed, before anything is sampled or described."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from coldrun.tasks.config import SplitConfig
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import Task

UNDATED = dt.datetime.min.replace(tzinfo=dt.UTC)


def split_tasks(
    tasks: Sequence[Task], split: SplitConfig | None
) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Divide the tasks into (dev, sealed), each newest first, ties by id.

    With `sealed_fraction` the newest round(fraction * n) tasks are sealed (half rounds up; at
    least one, at most all but one). With `sealed_after` those dated after that day (UTC) are.
    A task without a date counts as older than all others. Without a split nothing is sealed.
    """
    newest_first = sorted(sorted(tasks, key=lambda task: task.id), key=task_instant, reverse=True)
    if split is None:
        return tuple(newest_first), ()
    if len(newest_first) < 2:
        raise PanelError(
            f"[split] needs at least 2 solvable tasks, found {len(newest_first)}; "
            "widen the range or leave [split] out"
        )
    sealed = _count_sealed(newest_first, split)
    return tuple(newest_first[sealed:]), tuple(newest_first[:sealed])


def task_instant(task: Task) -> dt.datetime:
    """When the task happened, in UTC; the earliest possible instant when it has no date."""
    if task.date is None:
        return UNDATED
    try:
        instant = dt.datetime.fromisoformat(task.date)
    except ValueError:
        raise PanelError(
            f"task {task.id!r} has the date {task.date!r}; write ISO 8601, "
            'such as "2026-08-01T12:00:00Z"'
        ) from None
    if instant.tzinfo is None:
        return instant.replace(tzinfo=dt.UTC)
    return instant.astimezone(dt.UTC)


def _count_sealed(newest_first: Sequence[Task], split: SplitConfig) -> int:
    total = len(newest_first)
    if split.sealed_fraction is not None:
        return min(max(int(split.sealed_fraction * total + 0.5), 1), total - 1)
    last_day = split.sealed_after
    if last_day is None:  # the configuration refuses this; the types cannot say so
        raise PanelError("[split] needs either `sealed_fraction` or `sealed_after`")
    instants = [task_instant(task) for task in newest_first]
    if instants[0] == UNDATED:
        raise PanelError(
            f"[split] sealed_after = {last_day} needs dates, and no task has one; "
            "use `sealed_fraction`"
        )
    sealed = sum(instant.date() > last_day for instant in instants)
    if sealed in {0, total}:
        part = "no task" if sealed == 0 else "every task"
        raise PanelError(
            f"[split] sealed_after = {last_day} would seal {part}: the newest is of "
            f"{instants[0].date()}, the oldest of {_first_day(instants)}; choose a day between"
        )
    return sealed


def _first_day(instants: Sequence[dt.datetime]) -> str:
    return "unknown date" if instants[-1] == UNDATED else str(instants[-1].date())
