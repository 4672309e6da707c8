"""What a pilot run says about its panel: which tasks can tell arms apart at all. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from coldrun.tasks.freeze.panel_size import Discrimination, describe_discrimination
from coldrun.tasks.judge.answer_rows import AnswerRow
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.stats.power import minimum_detectable_effect

SOLVED = 0.5
"""A trial solves a task that it did not miss, or with this much of its score; a task is solved
when at least half of its trials solve it."""

SHOWN = 12


def discriminate(rows: Sequence[AnswerRow]) -> Discrimination:
    """Sort the tasks of a run by which of its arms solved them."""
    solved: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        solved[row.arm][row.task_id].append(row.miss is None or row.score >= SOLVED)
    return describe_discrimination(
        {
            arm: {task: fmean(values) >= SOLVED for task, values in by_task.items()}
            for arm, by_task in solved.items()
        }
    )


def discrimination_values(rows: Sequence[AnswerRow]) -> dict[str, Any]:
    """The same as JSON values, with the smallest detectable effect."""
    found = discriminate(rows)
    return {**asdict(found), "mde_tasks": minimum_detectable_effect(found.tasks)}


def discrimination_lines(rows: Sequence[AnswerRow], primary: str) -> Iterator[str]:
    """The panel in sentences: who solved what, and the smallest effect that it can show."""
    found = discriminate(rows)
    tasks, arms = counted(found.tasks, "task"), counted(found.arms, "arm")
    yield f"{tasks}, {arms}, solved or not at {primary}"
    yield from _listed("solved by every arm", found.all_solve)
    yield from _listed("solved by no arm", found.none_solve)
    yield from _listed("solved by some", found.split)
    observed = found.observed_discordance
    yield (
        f"largest possible discordance: {counted(found.possible_discordance, 'task')}"
        + ("" if observed is None else f"; the most that two arms differed on: {observed}")
    )
    effect = minimum_detectable_effect(found.tasks)
    yield (
        f"{tasks} cannot show any gain with 80 % power"
        if effect is None
        else f"smallest detectable effect with 80 % power: a net gain of {effect:.1f} tasks"
    )
    yield from (f"warning: {warning}" for warning in found.warnings)


def _listed(what: str, tasks: Sequence[str]) -> Iterator[str]:
    more = f" and {len(tasks) - SHOWN} more" if len(tasks) > SHOWN else ""
    names = f": {', '.join(tasks[:SHOWN])}{more}" if tasks else ""
    yield f"{len(tasks)} {what}{names}"
