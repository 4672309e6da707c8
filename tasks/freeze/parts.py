"""The two parts of a panel: balanced, to tell systems apart, and random, to say what users see.

Each is drawn from the dev tasks by a rule of its own and has its own n, nulls, tests and intervals.
They overlap where they happen to, and what both hold is asked once. The lock says which is primary:
bars, nights, trends and histories use that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from coldrun.tasks.config import Config
from coldrun.tasks.freeze.sample import sample_tasks
from coldrun.tasks.lib.records import Task

Part = Literal["balanced", "random", "population"]
Parts = Mapping[Part, tuple[Task, ...]]

MOST_POPULATION = 5000
"""Dev tasks up to which the panel keeps all of them, for the built-in arms."""


def draw_parts(config: Config, dev: Sequence[Task]) -> Parts:
    """The parts of a panel, the primary one first.

    A part that would repeat another one is left out. `population` are all dev tasks, kept where
    they were mined and are not too many.
    """
    sample, primary = config.sample, config.primary_part
    drawn: dict[Part, tuple[Task, ...]] = {}
    if config.sample_rule in ("all", "random"):
        size = sample.size
    else:
        size = config.random_size
        drawn["balanced"] = sample_tasks(
            dev, rule=config.sample_rule, size=sample.size, seed=sample.seed
        )
    if size != 0:
        rule = "all" if config.sample_rule == "all" else "random"
        drawn["random"] = sample_tasks(dev, rule=rule, size=size, seed=sample.seed)
    if config.panel.kind != "jsonl" and len(dev) <= MOST_POPULATION:
        drawn["population"] = tuple(dev)
    ordered = {primary: drawn.pop(primary), **drawn}
    ids = {name: {task.id for task in tasks} for name, tasks in ordered.items()}
    kept: dict[Part, tuple[Task, ...]] = {}
    for name, tasks in ordered.items():
        if ids[name] not in [ids[other] for other in kept]:
            kept[name] = tasks
    return kept


def mark_parts(parts: Parts) -> tuple[Task, ...]:
    """All tasks of the parts, each with the names of those that it is in, the population aside.

    With a single part no task is marked: it is the whole panel.
    """
    found = {task.id: task for tasks in parts.values() for task in tasks}
    if len(parts) == 1:
        return tuple(found.values())
    names: dict[str, list[str]] = {task_id: [] for task_id in found}
    for name, tasks in parts.items():
        for task in tasks if name != "population" else ():
            names[task.id].append(name)
    return tuple(replace(task, parts=tuple(names[task.id])) for task in found.values())


def split_parts(tasks: Sequence[Task], lock: Mapping[str, Any]) -> Parts:
    """The parts in which a panel's tasks are, by its lock, the primary one first.

    Panels from before there were parts are balanced as a whole.
    """
    primary: Part = lock["panel"].get("primary", "balanced")
    if not any(task.parts for task in tasks):
        return {primary: tuple(tasks)}
    others: tuple[Part, ...] = ("balanced", "random")
    names = [primary, *(name for name in others if name != primary)]
    parts: dict[Part, tuple[Task, ...]] = {
        name: tuple(task for task in tasks if name in task.parts) for name in names
    }
    if not all(task.parts for task in tasks):
        parts["population"] = tuple(tasks)
    return {name: found for name, found in parts.items() if found}


def primary_tasks(tasks: Sequence[Task], lock: Mapping[str, Any]) -> tuple[Task, ...]:
    """The tasks of the primary part."""
    return next(iter(split_parts(tasks, lock).values()))
