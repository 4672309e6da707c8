"""What the answers look like before anything is sampled: the line that saves a week."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

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
    `names_gold_share` is the share of tasks whose query names a gold path or its basename, None
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
        names_gold_share=_names_gold_share(tasks),
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


def _names_gold_share(tasks: Sequence[Task]) -> float | None:
    marks = [task.strata["names_gold"] for task in tasks if "names_gold" in task.strata]
    return sum(mark != "no" for mark in marks) / len(marks) if marks else None


def _name_answer(answer: tuple[str, ...]) -> str:
    return " + ".join(answer) if answer else "nothing"
