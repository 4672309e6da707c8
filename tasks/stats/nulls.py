"""The null family: what answers score that know nothing of the question. Computed, never run.

`constant` reads gold, so no deployed system could do it; it is the hardest of the nulls.
`most-changed` reads none: a product could ship it. `random` is an expectation over all random
answers. `permuted` takes a candidate's own answers to the other tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.gold_table import build_gold_table
from coldrun.tasks.stats.measures import Measure
from coldrun.tasks.stats.measures.definition import RandomDraw, cut_items

Grades = tuple[float, ...]

FEW_PAIRS = 8
"""Scoring pairs of an answer and a task, for each task, up to which only these are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullGround:
    """What the nulls read of the corpus: its size, and the changes of items before base.

    Empty `change_counts` leave `most-changed` out.
    """

    corpus_items: int
    change_counts: Mapping[str, int]


def measure_nulls(
    tasks: Sequence[Task], measure: Measure, *, primary: Measure, k: int, ground: NullGround
) -> dict[str, FloatArray]:
    """Score every null that needs no candidate, task by task, in the order of reports.

    `everything` is for sets only, `most-changed` only where changes are counted. `constant` is the
    best constant answer at `primary`, whatever is measured of it, so that one line of a report is
    one answer.
    """
    _require_gold(tasks, measure)
    items = _corpus_names(tasks, ground)
    scores = {"empty": _score_all(tasks, measure, ())}
    if any(task.answer == "set" for task in tasks):
        scores["everything"] = _score_everything(tasks, measure, items)
    scores["constant"] = _score_all(tasks, measure, constant_answer(tasks, primary, k=k))
    if ground.change_counts:
        scores["most-changed"] = _score_all(tasks, measure, most_changed_answer(tasks, ground, k=k))
    scores["random"] = random_scores(tasks, measure, k=k, items=items)
    return scores


def most_changed_answer(tasks: Sequence[Task], ground: NullGround, *, k: int) -> list[str]:
    """Name the items that changed most before base: `k` for rankings, else as many as the
    commonest gold set holds, at least one; of equally common sizes the smallest."""
    if all(task.answer == "set" for task in tasks):
        sizes = Counter(len(task.shape) for task in tasks if task.shape)
        k = min(sizes, key=lambda size: (-sizes[size], size), default=1)
    changes = ground.change_counts
    return sorted(changes, key=lambda item: (-changes[item], item))[:k]


def constant_answer(tasks: Sequence[Task], measure: Measure, *, k: int) -> tuple[str, ...]:
    """Find the constant answer that scores best on the panel: at most `k` items for rankings.

    Equal choices go to the item that comes first in text order, so that the answer is the same on
    every machine.
    """
    _require_gold(tasks, measure)
    if not tasks:
        return ()
    table = build_gold_table(tasks)
    is_ranking = any(task.answer == "ranking" for task in tasks)
    size = k if is_ranking or measure.cutoff is not None else len(table.items)
    choose = measure.definition.choose_constant
    chosen = choose(table, measure.cutoff, size) if choose else table.cover_greedily(size)
    return tuple(table.items[column] for column in (chosen if is_ranking else sorted(chosen)))


def constant_bound(tasks: Sequence[Task], measure: Measure) -> float | None:
    """What no constant answer can exceed, where the best one was not proven; else None."""
    if measure.name != "hit" or measure.cutoff is None or not tasks:
        return None
    table = build_gold_table(tasks)
    best, bound = table.cover_best(measure.cutoff)
    covered = np.count_nonzero(table.marks[:, best].sum(axis=1))
    return bound / len(tasks) if bound > covered else None


def permutation_p(
    arms: Sequence[Sequence[Mapping[str, Sequence[str]]]],
    tasks: Sequence[Task],
    measure: Measure,
    *,
    seed: int,
    resamples: int = 9999,
) -> list[float]:
    """Give, for each arm, the p that its answers fit their own tasks better than each other's.

    An arm's answers, one mapping for each trial, are given to the tasks in random orders; all
    trials and arms share the orders. Where the question decides nothing, every order is as likely
    as the real one, so p = (1 + orders with as high a score) / (1 + resamples).

    Source: Fisher's permutation test; task-wise sign flips take dependent scores for independent.
    """
    tables = [[_PairScores(trial, tasks, measure) for trial in trials] for trials in arms]
    rng = np.random.default_rng(seed)
    own = [sum(table.total(np.arange(len(tasks))) for table in trials) for trials in tables]
    hits = [0] * len(arms)
    for _ in range(resamples):
        order = rng.permutation(len(tasks))
        for arm, trials in enumerate(tables):
            score = sum(table.total(order) for table in trials)
            hits[arm] += score >= own[arm] - 1e-9 * max(own[arm], 1.0)
    return [(1 + count) / (1 + resamples) for count in hits]


class _PairScores:
    """What every answer scores on every task, for sums over one answer a task.

    Answers that are alike share a row, and tasks whose gold is alike share a column. Where few
    pairs score, these pairs are all that is kept.
    """

    def __init__(
        self, answers: Mapping[str, Sequence[str]], tasks: Sequence[Task], measure: Measure
    ) -> None:
        cut = [tuple(cut_items(answers.get(task.id, ()), measure.cutoff)) for task in tasks]
        rows, self._row_of = _number(cut)
        golds = [tuple(sorted(task.gold_grades.items())) for task in tasks]
        columns, self._column_of = _number(golds)
        holders: dict[str, list[int]] = {}
        for row, items in enumerate(rows):
            for item in items:
                holders.setdefault(item, []).append(row)
        empty = [row for row, items in enumerate(rows) if not items]
        found = [
            (row, column, score)
            for column, gold in enumerate(columns)
            for row in ({at for item, _ in gold for at in holders.get(item, ())} if gold else empty)
            if (score := measure.score(rows[row], dict(gold)) or 0.0)
        ]
        tasks_with = np.bincount(self._column_of), np.bincount(self._row_of)
        pairs = sum(int(tasks_with[0][column] * tasks_with[1][row]) for row, column, _ in found)
        self._is_sparse = pairs <= FEW_PAIRS * len(tasks)
        if self._is_sparse:
            self._expand(found)
        else:
            self._table = np.zeros((len(rows), len(columns)), dtype=np.float64)
            for row, column, score in found:
                self._table[row, column] = score

    def _expand(self, found: Sequence[tuple[int, int, float]]) -> None:
        places = [np.flatnonzero(self._row_of == row) for row in range(self._row_of.max() + 1)]
        asked = [np.flatnonzero(self._column_of == at) for at in range(self._column_of.max() + 1)]
        pairs = [
            (answer, task, score)
            for row, column, score in found
            for answer in places[row]
            for task in asked[column]
        ]
        self._answers = np.array([answer for answer, _, _ in pairs], dtype=np.int64)
        self._tasks = np.array([task for _, task, _ in pairs], dtype=np.int64)
        self._scores = np.array([score for _, _, score in pairs], dtype=np.float64)

    def total(self, order: NDArray[np.int64]) -> float:
        """The sum of scores when task i has the answer that was given to task `order[i]`."""
        if self._is_sparse:
            return float(self._scores[order[self._tasks] == self._answers].sum())
        return float(self._table[self._row_of[order], self._column_of].sum())


Key = TypeVar("Key", bound=Hashable)


def _number(keys: Sequence[Key]) -> tuple[list[Key], NDArray[np.int64]]:
    """The different keys, and for each key its number among them."""
    numbers: dict[Key, int] = {}
    places = [numbers.setdefault(key, len(numbers)) for key in keys]
    return list(numbers), np.array(places, dtype=np.int64)


def random_p(scores: FloatArray, expected: FloatArray) -> float:
    """Give the probability that random answers find as many tasks, for scores of 0 and 1.

    `expected` are the chances of the tasks. Means of trials count by their sum, rounded up.
    Source: the Poisson binomial distribution, summed exactly.
    """
    masses = np.zeros(len(expected) + 1)
    masses[0] = 1.0
    for chance in expected:
        masses[1:] = masses[1:] * (1 - chance) + masses[:-1] * chance
        masses[0] *= 1 - chance
    found = int(np.ceil(float(scores.sum()) - 1e-9))
    return float(min(1.0, masses[found:].sum()))


def random_scores(
    tasks: Sequence[Task], measure: Measure, *, k: int, items: Sequence[str]
) -> FloatArray:
    """Give each task's expected score of a random answer.

    For rankings: the first `k` of a uniformly random order of the corpus items. For sets: a size
    drawn from the sizes of the panel's gold sets, then a uniformly random set of that size.
    Gold items outside the corpus are never found.
    """
    _require_gold(tasks, measure)
    corpus = frozenset(items)
    if all(task.answer == "ranking" for task in tasks):
        sizes = Counter({min(k, measure.cutoff or k, len(corpus)): len(tasks)})
    else:
        sizes = Counter(min(len(task.shape), len(corpus)) for task in tasks)
    cache: dict[tuple[Grades, Grades], float] = {}
    scores = []
    for task in tasks:
        gold = task.gold_grades
        known = [item for item in gold if item in corpus]
        # tasks whose gold has the same grades, inside the corpus and in all, score the same
        key = (_sorted_grades(gold, known), _sorted_grades(gold, gold))
        if key not in cache:
            cache[key] = sum(
                count
                * measure.definition.expect_random(
                    RandomDraw(
                        items=len(corpus),
                        drawn=size,
                        gold=gold,
                        known=known,
                        cutoff=measure.cutoff,
                    )
                )
                for size, count in sizes.items()
            ) / len(tasks)
        scores.append(cache[key])
    return np.array(scores, dtype=np.float64)


def permuted_scores(
    answers: Mapping[str, Sequence[str]], tasks: Sequence[Task], measure: Measure
) -> FloatArray:
    """Give each task's mean score over the answers that the candidate gave to the other tasks.

    The expectation is over all pairings; no shuffle is drawn. A missing id counts as empty.
    """
    if len(tasks) < 2:
        raise ValueError(f"permuting answers needs at least two tasks, got {len(tasks)}")
    _require_gold(tasks, measure)
    cut = [cut_items(answers.get(task.id, ()), measure.cutoff) for task in tasks]
    own = np.array([_score(measure, mine, task) for mine, task in zip(cut, tasks, strict=True)])
    if measure.definition.sum_over_answers is None:
        totals = np.array([sum(_score(measure, mine, task) for mine in cut) for task in tasks])
    else:
        table = build_gold_table(tasks)
        totals = measure.definition.sum_over_answers(table, cut, measure.cutoff)
    return np.asarray(np.clip((totals - own) / (len(tasks) - 1), 0.0, 1.0), dtype=np.float64)


def _require_gold(tasks: Sequence[Task], measure: Measure) -> None:
    if "set" in measure.answer_kinds:
        return
    for task in tasks:
        if not task.gold:
            raise PanelError(
                f"task {task.id} has no gold, so {measure.text} is undefined on it; score "
                "empty-gold tasks with a set measure (precision, recall, f1 or exact)"
            )


def _score(measure: Measure, items: Sequence[str], task: Task) -> float:
    return measure.score(items, task.gold_grades) or 0.0  # after _require_gold, never None


def _score_all(tasks: Iterable[Task], measure: Measure, answer: Sequence[str]) -> FloatArray:
    return np.array([_score(measure, answer, task) for task in tasks], dtype=np.float64)


def _score_everything(tasks: Sequence[Task], measure: Measure, corpus: Iterable[str]) -> FloatArray:
    answer = tuple(corpus)
    keys = [_sorted_grades(task.gold_grades, task.gold_grades) for task in tasks]
    scores = {
        key: _score(measure, answer, task)
        for key, task in dict(zip(keys, tasks, strict=True)).items()
    }
    return np.array([scores[key] for key in keys], dtype=np.float64)


def _sorted_grades(gold: Mapping[str, float], items: Iterable[str]) -> Grades:
    return tuple(sorted(gold[item] for item in items))


def _corpus_names(tasks: Sequence[Task], ground: NullGround) -> list[str]:
    # Nulls read how many items there are and which are gold; the others need no real name.
    known = dict.fromkeys(ground.change_counts)
    for task in tasks:
        known.update(dict.fromkeys(task.shape))
    return [*known, *(f"\0{number}" for number in range(ground.corpus_items - len(known)))]
