"""The permuted null: a candidate's own answers, scored against the other tasks' gold.

An arm that ignores the question scores the same with its answers shuffled. The expectation is
over all pairings of a task with another task's answer, so no shuffle is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.constant import ideal_gains
from coldrun.tasks.stats.gold_table import GoldTable, build_gold_table, require_gold
from coldrun.tasks.stats.measures import Measure
from coldrun.tasks.stats.measures.ranks import cut_items

FloatArray = NDArray[np.float64]


def permuted_scores(
    answers: Mapping[str, Sequence[str]], tasks: Sequence[Task], measure: Measure
) -> tuple[float, ...]:
    """Give each task's mean score over the answers that the candidate gave to the other tasks.

    Args:
        answers: Items by task id, best first; a missing id counts as the empty answer.
        tasks: The panel, at least two tasks of one answer kind.
        measure: What to score.

    Returns:
        Expected scores in [0, 1], in the order of `tasks`.

    Raises:
        ValueError: There are fewer than two tasks, so no other answer.
        PanelError: A task's gold is empty and the measure is one of rankings.
    """
    if len(tasks) < 2:
        raise ValueError(f"permuting answers needs at least two tasks, got {len(tasks)}")
    require_gold(tasks, measure)
    cut = [cut_items(answers.get(task.id, ()), measure.cutoff) for task in tasks]
    own = np.array(
        [
            measure.score(items, task.gold_grades) or 0.0
            for items, task in zip(cut, tasks, strict=True)
        ]
    )
    totals = _sum_over_answers(cut, tasks, measure)
    means = (totals - own) / (len(tasks) - 1)
    return tuple(float(mean) for mean in np.clip(means, 0.0, 1.0))


def _sum_over_answers(
    answers: Sequence[list[str]], tasks: Sequence[Task], measure: Measure
) -> FloatArray:
    """Sum each task's score over all answers, its own included: shape (tasks,)."""
    if measure.name == "exact":
        shapes = Counter(frozenset(items) for items in answers)
        return np.array([shapes[frozenset(task.shape)] for task in tasks], dtype=np.float64)
    table = build_gold_table(tasks)
    if measure.name in {"hit", "mrr"}:
        return _sum_first_ranks(answers, table, is_reciprocal=measure.name == "mrr")
    if measure.name == "ndcg":
        gains = table.grades @ _sum_discounts(answers, table)
        return np.asarray(gains / ideal_gains(table, measure.cutoff), dtype=np.float64)
    return _sum_overlaps(answers, table, measure)


def _sum_overlaps(answers: Sequence[list[str]], table: GoldTable, measure: Measure) -> FloatArray:
    marks = table.mark_answers(answers)
    sizes = np.array([len(items) for items in answers], dtype=np.float64)
    safe_gold, safe_sizes = np.maximum(table.sizes, 1.0), np.maximum(sizes, 1.0)
    if measure.name == "f1":
        overlap = (table.marks @ marks.T).tocoo()
        shares = 2.0 * overlap.data / (table.sizes[overlap.row] + sizes[overlap.col])
        totals = np.bincount(overlap.row, shares, minlength=len(table.sizes))
    elif measure.name == "recall":
        totals = (table.marks @ (marks.T @ np.ones_like(sizes))) / safe_gold
    else:
        divisors = safe_sizes if measure.cutoff is None else np.full_like(sizes, measure.cutoff)
        totals = table.marks @ (marks.T @ (1.0 / divisors))
    # empty against empty is right
    return np.where(table.sizes == 0, float(np.count_nonzero(sizes == 0)), totals)


def _sum_discounts(answers: Sequence[list[str]], table: GoldTable) -> FloatArray:
    sums = np.zeros(len(table.items))
    for items in answers:
        for rank, item in enumerate(items, start=1):
            column = table.columns.get(item)
            if column is not None:
                sums[column] += 1.0 / np.log2(rank + 1)
    return sums


def _sum_first_ranks(
    answers: Sequence[list[str]], table: GoldTable, *, is_reciprocal: bool
) -> FloatArray:
    postings = _build_postings(answers, table)
    starts, rows = postings.indptr, postings.indices
    values = postings.data if is_reciprocal else np.ones_like(postings.data)
    gold = table.marks
    totals = np.zeros(len(table.sizes))
    best = np.zeros(len(answers))
    for task in range(len(totals)):
        for column in gold.indices[gold.indptr[task] : gold.indptr[task + 1]]:
            span = slice(starts[column], starts[column + 1])
            holders = rows[span]  # an answer holds an item once, so no row comes twice
            best[holders] = np.maximum(best[holders], values[span])
        totals[task] = best.sum()
        best.fill(0.0)
    return totals


def _build_postings(answers: Sequence[list[str]], table: GoldTable) -> scipy.sparse.csc_matrix:
    """List, for each gold item, the answers that hold it and 1/rank there."""
    found = [
        (row, table.columns[item], rank)
        for row, items in enumerate(answers)
        for rank, item in enumerate(items, start=1)
        if item in table.columns
    ]
    rows, columns, ranks = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return scipy.sparse.csc_matrix(
        (1.0 / ranks, (rows, columns)), shape=(len(answers), len(table.items))
    )
