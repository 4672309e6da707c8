"""The best constant answer: one answer to every task, chosen with the key in hand.

It reads gold, so no deployed system could do it; it is the hardest of the nulls. Exact for every
measure but hit and mrr: at a given size each of the others is a sum over the answer's items, so
the best items are those of the largest weights. The best list for hit is a maximum cover, which
is NP-hard; hit and mrr take the greedy list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.gold_table import GoldTable, build_gold_table, require_gold
from coldrun.tasks.stats.measures import Measure

FloatArray = NDArray[np.float64]


def constant_answer(tasks: Sequence[Task], measure: Measure, *, k: int) -> tuple[str, ...]:
    """Find the constant answer that scores best on the panel.

    Args:
        tasks: The panel, all of one answer kind.
        measure: What to be best at. With a cut-off, only so many items count.
        k: The longest ranking that a question allows; unused for sets.

    Returns:
        Items best first for rankings, in text order for sets; possibly empty. Equal choices go to
        the item that comes first in text order, so the answer is the same on every machine.
        hit, mrr: the greedy list, each time the item that covers most tasks not covered yet (then
        the commonest, then the first); when all tasks are covered, covering starts anew.
        precision@k, recall@k, ndcg@k: the k items of the largest mean gain, which is optimal.
        exact: the commonest shape. precision, recall, f1: the best set of each size by weight and
        the best size, or the empty set; at most `k` items for rankings.

    Raises:
        PanelError: A task's gold is empty and the measure is one of rankings.
    """
    require_gold(tasks, measure)
    if not tasks:
        return ()
    if measure.name == "exact":
        shapes = Counter(task.shape for task in tasks)
        return min(shapes, key=lambda shape: (-shapes[shape], shape))
    table = build_gold_table(tasks)
    if measure.name in {"hit", "mrr"}:
        chosen = _cover_greedily(table, k)
    elif measure.cutoff is not None:
        chosen = _rank_by_weight(_weigh_for_cutoff(table, measure))[:k]
    else:
        is_ranking = any(task.answer == "ranking" for task in tasks)
        chosen = _choose_set(table, measure.name, k if is_ranking else len(table.items))
        chosen = chosen if is_ranking else sorted(chosen)
    return tuple(table.items[column] for column in chosen)


def _cover_greedily(table: GoldTable, k: int) -> list[int]:
    by_item = table.marks.tocsc()
    frequency = np.diff(by_item.indptr)
    gains = frequency.astype(np.int64)
    covered = np.zeros(len(table.sizes), dtype=bool)
    # one number orders by gain, then by frequency; argmax takes the first of equals: text order
    scale = int(frequency.max(initial=0)) + 1
    is_free = np.ones(len(table.items), dtype=bool)
    chosen: list[int] = []
    for _ in range(min(k, len(table.items))):
        if not (gains[is_free] > 0).any():
            covered[:] = False
            gains = frequency.astype(np.int64)
        column = int(np.argmax(np.where(is_free, gains * scale + frequency, -1)))
        chosen.append(column)
        is_free[column] = False
        rows = by_item.indices[by_item.indptr[column] : by_item.indptr[column + 1]]
        fresh = rows[~covered[rows]]
        covered[fresh] = True
        gains = gains - np.asarray(table.marks[fresh].sum(axis=0), dtype=np.int64).ravel()
    return chosen


def _weigh_for_cutoff(table: GoldTable, measure: Measure) -> FloatArray:
    """Weigh each item by what it adds over all tasks, whatever else the list holds."""
    if measure.name == "precision":
        return sum_rows(table, np.ones_like(table.sizes))
    if measure.name == "recall":
        return sum_rows(table, 1.0 / table.sizes)
    ideals = ideal_gains(table, measure.cutoff)
    return np.asarray(table.grades.T @ (1.0 / ideals), dtype=np.float64)


def _choose_set(table: GoldTable, name: str, largest: int) -> list[int]:
    empties = float(np.count_nonzero(table.sizes == 0))
    if name == "recall":
        safe = np.maximum(table.sizes, 1.0)
        best = _rank_by_weight(sum_rows(table, 1.0 / safe))[:largest]
        is_worth = float(_sum_of(best, sum_rows(table, 1.0 / safe))) > empties
        return best if is_worth else []
    if name == "precision":
        frequency = sum_rows(table, np.ones_like(table.sizes))
        best = _rank_by_weight(frequency)[: min(1, largest)]
        return best if float(_sum_of(best, frequency)) > empties else []
    chosen: list[int] = []
    best_total = empties
    for size in range(1, min(largest, len(table.items)) + 1):
        shares = 2.0 / (size + table.sizes)
        if float(shares @ table.sizes) <= best_total + 1e-9:
            break  # not even finding all gold would pay at this size or a larger one
        weights = sum_rows(table, shares)
        ranked = _rank_by_weight(weights)[:size]
        total = float(_sum_of(ranked, weights))
        if total > best_total + 1e-9:
            chosen, best_total = ranked, total
    return chosen


def sum_rows(table: GoldTable, weights: FloatArray) -> FloatArray:
    """Sum task weights over the tasks that have each item in gold: shape (items,)."""
    return np.asarray(table.marks.T @ weights, dtype=np.float64)


def ideal_gains(table: GoldTable, cutoff: int | None) -> FloatArray:
    """Compute the ideal discounted gain of each task, linear gain, cut at `cutoff`."""
    grades = table.grades
    ideals = np.empty(len(table.sizes))
    for row in range(len(ideals)):
        best = np.sort(grades.data[grades.indptr[row] : grades.indptr[row + 1]])[::-1][:cutoff]
        ideals[row] = best @ (1.0 / np.log2(np.arange(2, len(best) + 2)))
    return ideals


def _rank_by_weight(weights: FloatArray) -> list[int]:
    # rounding makes equal sums of floats equal, and then the first in text order wins
    rounded = np.round(weights, 9)
    return [int(column) for column in np.argsort(-rounded, kind="stable")]


def _sum_of(columns: Sequence[int], weights: FloatArray) -> float:
    return float(weights[list(columns)].sum())
