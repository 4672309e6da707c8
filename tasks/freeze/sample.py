"""Which of the solvable tasks are asked: the sampling rules.

Every rule is a function of the set of tasks, the seed and the size: the order in which tasks
arrive does not matter, and ties go by SHA-256 of seed and id, never by the alphabet or by age. A
smaller sample is a prefix of a larger one, so that growing a panel keeps what was asked before.
"""

from __future__ import annotations

import datetime as dt
import heapq
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice

from coldrun.tasks.config import SplitConfig
from coldrun.tasks.lib.errors import ConfigError, PanelError
from coldrun.tasks.lib.records import Task

SAMPLE_RULES = ("gold-capped", "answer-shape", "all", "random", "newest", "largest-first")


def sample_tasks(
    tasks: Sequence[Task], *, rule: str, size: int | None, seed: int
) -> tuple[Task, ...]:
    """Choose `size` of the tasks by `rule`, in the order in which they were chosen."""
    _refuse_repeated_ids(tasks)
    ordered = sorted(tasks, key=lambda task: _draw(seed, "task", task.id))
    match rule:
        case "gold-capped":
            chosen = _gold_capped(ordered)
        case "answer-shape":
            chosen = _round_robin(ordered, seed)
        case "random":
            chosen = iter(sorted(ordered, key=lambda task: _draw(seed, "random", task.id)))
        case "newest":
            chosen = iter(sorted(ordered, key=task_instant, reverse=True))
        case "largest-first":
            chosen = iter(sorted(ordered, key=lambda task: -len(task.shape)))
        case "all":
            if size is not None and size < len(tasks):
                raise ConfigError(
                    f'[sample] rule = "all" takes all {len(tasks)} tasks, but size = {size}; '
                    "leave `size` out or choose another rule"
                )
            chosen = iter(ordered)
        case _:
            raise ConfigError(
                f"[sample] rule = {rule!r} is not known; use one of {', '.join(SAMPLE_RULES)}"
            )
    return tuple(islice(chosen, size))


def _gold_capped(ordered: Sequence[Task]) -> Iterator[Task]:
    """Yield next the task whose most often taken gold item was taken least; ties by rank.

    Each task waits in the queue of one of its items, so the count of that item is a lower bound
    of the task's key, and a hub's count rises for all that wait there at once. A task at the head
    of the lowest queue whose key proves higher moves to the queue of the item that makes it so;
    the first whose key holds is the minimum. Every queue has an entry for its present head in the
    heap of queues; entries for earlier heads are skipped.
    """
    items, tasks_of = _number_items(ordered)
    taken = [0] * len(tasks_of)
    queues: list[list[int]] = [[] for _ in tasks_of]
    for rank, names in enumerate(items):  # in order of rank, so each queue is a heap already
        queues[max(names, key=tasks_of.__getitem__)].append(rank)
    heads = [(0, queue[0], item) for item, queue in enumerate(queues) if queue]
    heapq.heapify(heads)
    while heads:
        bound, rank, item = heapq.heappop(heads)
        queue = queues[item]
        if not queue or queue[0] != rank:
            continue
        if taken[item] == bound:
            heapq.heappop(queue)
            highest = max(items[rank], key=taken.__getitem__)
            if taken[highest] == bound:
                for name in items[rank]:
                    taken[name] += 1
                yield ordered[rank]
            else:
                heapq.heappush(queues[highest], rank)
                heapq.heappush(heads, (taken[highest], queues[highest][0], highest))
        if queue:
            heapq.heappush(heads, (taken[item], queue[0], item))


def _number_items(tasks: Sequence[Task]) -> tuple[list[list[int]], list[int]]:
    numbers: dict[str | None, int] = {}
    items = [
        [numbers.setdefault(item, len(numbers)) for item in task.shape or (None,)] for task in tasks
    ]
    counts = Counter(number for names in items for number in names)
    return items, [counts[number] for number in range(len(numbers))]


def _round_robin(ordered: Iterable[Task], seed: int) -> Iterator[Task]:
    by_shape: dict[tuple[str, ...], deque[Task]] = {}
    for task in ordered:
        by_shape.setdefault(task.shape, deque()).append(task)
    queues = deque(
        by_shape[shape]
        for shape in sorted(by_shape, key=lambda shape: _draw(seed, "shape", list(shape)))
    )
    while queues:
        queue = queues.popleft()
        yield queue.popleft()
        if queue:
            queues.append(queue)


def _draw(seed: int, what: str, value: str | list[str]) -> bytes:
    return sha256(json.dumps([seed, what, value], separators=(",", ":")).encode()).digest()


def _refuse_repeated_ids(tasks: Sequence[Task]) -> None:
    repeated = sorted(id_ for id_, count in Counter(task.id for task in tasks).items() if count > 1)
    if repeated:
        raise PanelError(f"task id {repeated[0]!r} is there twice; every task needs its own id")


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
