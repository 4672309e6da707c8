"""What the answers look like before anything is sampled: the line that saves a week."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.plain_text import counted, noun
from coldrun.tasks.lib.records import Task

TOP_SHARE_LIMIT = 0.5
INVERSE_SIMPSON_LIMIT = 3.0
RANKING_ITEM_LIMIT = 0.3
COMMONEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCount:
    """How many tasks have exactly this answer; the empty tuple is "nothing"."""

    answer: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCount:
    """How many tasks have this item in their gold."""

    item: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How the answers of some tasks are distributed.

    `top_share` is the share of tasks with the commonest answer (and so exactly what the best
    constant scores on exact match); `effective_shapes` is 2 to the entropy in bits and
    `inverse_simpson` is 1 / sum of squared shares, both between 1 and `shapes`.
    `names_gold_share` is the share of tasks whose query names a gold path or its basename,
    `docs_only_share` and `tests_only_share` that of tasks whose gold is nothing else; they are None
    when the tasks were not marked. `warnings` are sentences for people, empty when no answer
    dominates.
    """

    tasks: int
    shapes: int
    top_share: float
    effective_shapes: float
    inverse_simpson: float
    commonest_answers: tuple[AnswerCount, ...]
    commonest_items: tuple[ItemCount, ...]
    names_gold_share: float | None
    docs_only_share: float | None
    tests_only_share: float | None
    warnings: tuple[str, ...]


def describe_distribution(tasks: Sequence[Task]) -> Distribution:
    """Count answer shapes and gold items; equal counts are listed in the order of their names.

    Source:
        Hill 1973, effective numbers of order 1 and 2.
    """
    if not tasks:
        raise PanelError("there is no task to describe; mine a range that has solvable tasks")
    total = len(tasks)
    shapes = Counter(task.shape for task in tasks)
    items = Counter(item for task in tasks for item in task.shape)
    shares = [count / total for count in shapes.values()]
    answers = tuple(
        AnswerCount(answer=answer, count=count)
        for answer, count in sorted(shapes.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    gold = tuple(
        ItemCount(item=item, count=count)
        for item, count in sorted(items.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    inverse_simpson = total**2 / sum(count**2 for count in shapes.values())
    return Distribution(
        tasks=total,
        shapes=len(shapes),
        top_share=answers[0].count / total,
        effective_shapes=2.0 ** -math.fsum(share * math.log2(share) for share in shares),
        inverse_simpson=inverse_simpson,
        commonest_answers=answers[:COMMONEST],
        commonest_items=gold[:COMMONEST],
        names_gold_share=_share(tasks, "names_gold", ("path", "basename")),
        docs_only_share=_share(tasks, "only", ("docs",)),
        tests_only_share=_share(tasks, "only", ("test",)),
        warnings=_warn(tasks, answers[0], gold[:1], inverse_simpson),
    )


def _warn(
    tasks: Sequence[Task],
    top: AnswerCount,
    commonest: Sequence[ItemCount],
    inverse_simpson: float,
) -> tuple[str, ...]:
    total = len(tasks)
    warnings = []
    if top.count / total > TOP_SHARE_LIMIT:
        warnings.append(
            f"one answer is right for {top.count} of {counted(total, 'task')} "
            f"({top.count / total:.0%}): "
            f"{_name_answer(top.answer)}; answering it always would score that without reading"
        )
    if inverse_simpson < INVERSE_SIMPSON_LIMIT:
        warnings.append(
            f"a few answers dominate: {counted(total, 'task')} {noun(total, 'counts', 'count')} "
            f"as {inverse_simpson:.1f} equally common "
            "answers; no sampling rule mends that alone"
        )
    is_ranking = any(task.answer == "ranking" for task in tasks)
    for item in commonest if is_ranking else ():
        if item.count / total > RANKING_ITEM_LIMIT:
            warnings.append(
                f"{item.item} is gold in {item.count} of {counted(total, 'task')} "
                f"({item.count / total:.0%}): "
                "a ranking that always begins with it scores that without reading"
            )
    return tuple(warnings)


def _share(tasks: Sequence[Task], stratum: str, values: Collection[str]) -> float | None:
    marks = [task.strata[stratum] for task in tasks if stratum in task.strata]
    return sum(mark in values for mark in marks) / len(marks) if marks else None


def _name_answer(answer: tuple[str, ...]) -> str:
    return " + ".join(answer) if answer else "nothing"


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
        warnings=_warn_of_rate(len(tasks), len(split), len(arms)),
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


def _warn_of_rate(tasks: int, split: int, arms: int) -> tuple[str, ...]:
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
