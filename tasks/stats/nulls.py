"""The null family: what answers score that know nothing of the question.

Nulls are computed, never run. Each strategy gives one score per task, paired with the arms'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.constant import constant_answer
from coldrun.tasks.stats.gold_table import require_gold
from coldrun.tasks.stats.measures import Measure
from coldrun.tasks.stats.permuted import permuted_scores
from coldrun.tasks.stats.random_null import random_scores

FloatArray = NDArray[np.float64]


def null_scores(
    tasks: Sequence[Task],
    measure: Measure,
    *,
    k: int,
    items: Sequence[str],
    change_counts: Mapping[str, int],
    best_at: Measure | None = None,
) -> dict[str, tuple[float, ...]]:
    """Score every null strategy that needs no candidate, task by task.

    Args:
        tasks: The panel in its order, all of one answer kind.
        measure: What to score.
        k: Items that a question asks for: the largest cut-off of the evaluation.
        items: Every item of the corpus.
        change_counts: Changes of each item before base; empty leaves `most-changed` out.
        best_at: What `constant` is the best constant answer at, left out: at `measure`. A report
            gives its primary measure for all columns, so that one line is one answer.

    Returns:
        Scores in [0, 1] in the order of `tasks`, keyed in this order: `empty`; `everything` (set
        answers only); `constant`; `most-changed` (only with counts); `random` (an expectation).

    Raises:
        PanelError: A task's gold is empty and the measure is one of rankings.
    """
    require_gold(tasks, measure)
    golds = [task.gold_grades for task in tasks]
    scores = {"empty": _score_all(golds, measure, ())}
    if any(task.answer == "set" for task in tasks):
        everything = dict.fromkeys(items)
        for task in tasks:
            everything.update(dict.fromkeys(task.shape))
        scores["everything"] = _score_everything(tasks, measure, everything)
    constant = constant_answer(tasks, best_at or measure, k=k)
    scores["constant"] = _score_all(golds, measure, constant)
    if change_counts:
        scores["most-changed"] = _score_all(golds, measure, most_changed_answer(change_counts, k=k))
    scores["random"] = random_scores(tasks, measure, k=k, items=items)
    return scores


def most_changed_answer(change_counts: Mapping[str, int], *, k: int) -> tuple[str, ...]:
    """Give the `k` items changed most often before base, equals in text order.

    Unlike `constant` it reads no gold: a product could ship it.
    """
    ranked = sorted(change_counts, key=lambda item: (-change_counts[item], item))
    return tuple(ranked[:k])


def _score_all(
    golds: Iterable[Mapping[str, float]], measure: Measure, answer: Sequence[str]
) -> tuple[float, ...]:
    # require_gold has been asked, so no score is None
    return tuple(measure.score(answer, gold) or 0.0 for gold in golds)


def _score_everything(
    tasks: Sequence[Task], measure: Measure, everything: Iterable[str]
) -> tuple[float, ...]:
    """Score the set of all items; by size of gold, since it holds every gold item."""
    answer = tuple(everything)
    by_size = {len(task.shape): task for task in tasks}
    scores = {
        size: measure.score(answer, task.gold_grades) or 0.0 for size, task in by_size.items()
    }
    return tuple(scores[len(task.shape)] for task in tasks)


__all__ = [
    "constant_answer",
    "most_changed_answer",
    "null_scores",
    "permuted_scores",
    "random_scores",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NullGround:
    """What the nulls read of the corpus: its size, and the most changed items before base."""

    corpus_items: int
    change_counts: Mapping[str, int]


def corpus_names(tasks: Sequence[Task], ground: NullGround) -> list[str]:
    """Names for every item of the corpus: the known ones, then numbers for the rest.

    Nulls read how many items there are and which are gold; of the others they need no name.
    """
    known = dict.fromkeys(ground.change_counts)
    for task in tasks:
        known.update(dict.fromkeys(task.shape))
    return [*known, *(f"\0{number}" for number in range(ground.corpus_items - len(known)))]


def measure_nulls(
    tasks: Sequence[Task],
    measure: Measure,
    *,
    primary: Measure,
    k: int,
    ground: NullGround,
) -> dict[str, FloatArray]:
    """The score vectors of every null that needs no candidate, in the order of reports.

    The constant answer is the best one at `primary`, whatever is measured of it.
    """
    found = null_scores(
        tasks,
        measure,
        k=k,
        items=corpus_names(tasks, ground),
        change_counts=ground.change_counts,
        best_at=primary,
    )
    return {name: np.asarray(values, dtype=np.float64) for name, values in found.items()}
