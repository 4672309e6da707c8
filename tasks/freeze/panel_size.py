"""Whether the panel can tell arms apart: what a pilot run shows about its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from coldrun.tasks.lib.plain_text import counted

SMALLEST_DECISIVE_DISCORDANCE = 6
"""Fewer discordant tasks than this cannot reach p <= 0.025 one-sided, however one-sided they are:
0.5 ** 5 = 0.031, 0.5 ** 6 = 0.016."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrimination:
    """The tasks of a pilot run by who solved them; ids in sorted order.

    `all_solve` and `none_solve` carry no information for any paired comparison of these arms;
    `split` are the others. `possible_discordance` is the number of split tasks, the most on
    which two arms with these outcomes could differ; `observed_discordance` is the most on which
    a pair did differ, None with a single arm.
    """

    tasks: int
    arms: int
    all_solve: tuple[str, ...]
    none_solve: tuple[str, ...]
    split: tuple[str, ...]
    possible_discordance: int
    observed_discordance: int | None
    warnings: tuple[str, ...]


def describe_discrimination(outcomes: Mapping[str, Mapping[str, bool]]) -> Discrimination:
    """Sort the tasks by who solved them.

    `outcomes` say by arm (without the nulls) whether each task was solved; all have the same tasks.
    """
    tasks = _common_tasks(outcomes)
    arms = list(outcomes.values())
    solvers = {task: sum(arm[task] for arm in arms) for task in tasks}
    split = tuple(task for task in tasks if 0 < solvers[task] < len(arms))
    observed = [
        sum(first[task] != second[task] for task in split)
        for first, second in combinations(arms, 2)
    ]
    return Discrimination(
        tasks=len(tasks),
        arms=len(arms),
        all_solve=tuple(task for task in tasks if solvers[task] == len(arms)),
        none_solve=tuple(task for task in tasks if solvers[task] == 0),
        split=split,
        possible_discordance=len(split),
        observed_discordance=max(observed, default=None),
        warnings=_warn(len(tasks), len(split), len(arms)),
    )


def warn_of_size(tasks: int) -> tuple[str, ...]:
    """The warning for a panel so small that no outcome at all could separate two arms."""
    if tasks >= SMALLEST_DECISIVE_DISCORDANCE:
        return ()
    warning = (
        f"{counted(tasks, 'task')} cannot separate two arms, even if one solves all and the "
        f"other none: at least {SMALLEST_DECISIVE_DISCORDANCE} must differ for p <= 0.025"
    )
    return (warning,)


def _warn(tasks: int, split: int, arms: int) -> tuple[str, ...]:
    if tasks < SMALLEST_DECISIVE_DISCORDANCE:
        return warn_of_size(tasks)
    if arms > 1 and split < SMALLEST_DECISIVE_DISCORDANCE:
        warning = (
            f"only {split} of {tasks} tasks were solved by some arms and not by others: no pair of "
            f"these arms can be separated, which takes {SMALLEST_DECISIVE_DISCORDANCE}"
        )
        return (warning,)
    return ()


def _common_tasks(outcomes: Mapping[str, Mapping[str, bool]]) -> list[str]:
    if not outcomes:
        raise ValueError("no arm has outcomes; run a pilot first")
    names = list(outcomes)
    tasks = set(outcomes[names[0]])
    for name in names[1:]:
        if set(outcomes[name]) != tasks:
            odd = sorted(tasks ^ set(outcomes[name]))
            raise ValueError(f"{names[0]!r} and {name!r} differ in their tasks: {odd[0]!r}")
    if not tasks:
        raise ValueError("the outcomes hold no task; run a pilot first")
    return sorted(tasks)
