"""Answers and gold of a whole panel as sparse tables, for the nulls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.records import Task

COVER_NODES = 2000
"""Nodes after which the search for the best cover stops, with the bound that it has proven."""


@dataclass(frozen=True, slots=True)
class GoldTable:
    """Gold of a panel as a table of grades.

    `grades` has shape (tasks, items) with the grade at gold items, `marks` a 1 there. `items` are
    the columns in text order, which is the tie rule of every null; `sizes` is the number of gold
    items per task.
    """

    items: tuple[str, ...]
    columns: dict[str, int]
    grades: scipy.sparse.csr_matrix
    marks: scipy.sparse.csr_matrix
    sizes: FloatArray

    def mark_answers(self, answers: Iterable[Sequence[str]]) -> scipy.sparse.csr_matrix:
        """Mark which gold items each answer holds: shape (answers, items), 0/1."""
        rows = [
            {self.columns[item]: 1.0 for item in answer if item in self.columns}
            for answer in answers
        ]
        return _build_rows(rows, len(self.items))

    @property
    def empties(self) -> int:
        """How many tasks have no gold."""
        return int(np.count_nonzero(self.sizes == 0))

    def sum_overlaps(
        self, answers: Sequence[Sequence[str]], weigh: Callable[[FloatArray], FloatArray | float]
    ) -> FloatArray:
        """Sum over all answers what a task finds of its gold, weighted by `weigh(answer sizes)`.

        A task without gold scores 1 with each empty answer.
        """
        sizes = np.array([len(items) for items in answers], dtype=np.float64)
        weights = np.broadcast_to(weigh(sizes), sizes.shape)
        totals = self.marks @ (self.mark_answers(answers).T @ weights)
        return np.where(self.sizes == 0, float(np.count_nonzero(sizes == 0)), totals)

    def sum_rows(self, weights: FloatArray | float) -> FloatArray:
        """Sum task weights over the tasks that have each item in gold: shape (items,)."""
        weights = np.broadcast_to(weights, self.sizes.shape)
        return np.asarray(self.marks.T @ weights, dtype=np.float64)

    def rank_by_weight(self, weights: FloatArray) -> list[int]:
        """Columns by falling weight; sums that differ by rounding only go by text order."""
        return [int(column) for column in np.argsort(-np.round(weights, 9), kind="stable")]

    def cover_greedily(self, size: int) -> list[int]:
        """Columns, each time the one in the gold of most tasks not covered yet.

        Equals go to the commonest, then to the first in text order. When all tasks are covered,
        covering starts anew.
        """
        by_item = self.marks.tocsc()
        frequency = np.diff(by_item.indptr)
        gains = frequency.astype(np.int64)
        covered = np.zeros(len(self.sizes), dtype=bool)
        # one number orders by gain, then by frequency; argmax takes the first of equals
        scale = int(frequency.max(initial=0)) + 1
        is_free = np.ones(len(self.items), dtype=bool)
        chosen: list[int] = []
        for _ in range(min(size, len(self.items))):
            if not (gains[is_free] > 0).any():
                covered[:] = False
                gains = frequency.astype(np.int64)
            column = int(np.argmax(np.where(is_free, gains * scale + frequency, -1)))
            chosen.append(column)
            is_free[column] = False
            rows = by_item.indices[by_item.indptr[column] : by_item.indptr[column + 1]]
            fresh = rows[~covered[rows]]
            covered[fresh] = True
            gains = gains - np.asarray(self.marks[fresh].sum(axis=0), dtype=np.int64).ravel()
        return chosen

    def cover_best(self, size: int) -> tuple[list[int], float]:
        """Columns that cover most tasks, as an integer program, and the proven bound on how many.

        The bound is above what the columns cover where the search ended at its limit of nodes.
        Source: maximum coverage (Nemhauser, Wolsey and Fisher 1978), solved by HiGHS.
        """
        greedy = self.cover_greedily(size)
        rows = self.marks[np.flatnonzero(self.sizes > 0)]
        rows.sort_indices()
        kinds = Counter(
            tuple(rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist())
            for row in range(rows.shape[0])
        )
        gold, counts = list(kinds), np.array(list(kinds.values()), dtype=np.float64)
        best = sum(count for kind, count in kinds.items() if not set(greedy).isdisjoint(kind))
        top = counts.sum()
        if best == top or size == 1 or size >= len(self.items):
            return greedy, float(best)
        chosen, covered = len(self.items), len(gold)
        table = _build_rows([dict.fromkeys(kind, 1.0) for kind in gold], chosen)
        found = scipy.optimize.milp(
            np.concatenate([np.zeros(chosen), -counts]),
            integrality=np.concatenate([np.ones(chosen), np.zeros(covered)]),
            bounds=scipy.optimize.Bounds(0, 1),
            constraints=[
                scipy.optimize.LinearConstraint(
                    scipy.sparse.hstack([table, -scipy.sparse.identity(covered)]), lb=0
                ),
                scipy.optimize.LinearConstraint(
                    np.concatenate([np.ones(chosen), np.zeros(covered)])[np.newaxis], ub=size
                ),
            ],
            options={"mip_rel_gap": 0.0, "node_limit": COVER_NODES},
        )
        bound = top if found.mip_dual_bound is None else np.floor(1e-6 - found.mip_dual_bound)
        if found.x is not None:
            columns = [int(column) for column in np.flatnonzero(found.x[:chosen] > 0.5)]
            total = sum(count for kind, count in kinds.items() if not set(columns).isdisjoint(kind))
            if total > best:
                frequency = self.sum_rows(1.0)
                columns.sort(key=lambda column: (-frequency[column], column))
                return columns, float(max(bound, total))
        return greedy, float(max(bound, best))

    def sum_best_ranks(
        self, answers: Sequence[Sequence[str]], *, is_reciprocal: bool
    ) -> FloatArray:
        """Sum, for each task, over all answers the 1/rank of the first gold item, or 1."""
        postings = self._build_postings(answers)
        starts, rows = postings.indptr, postings.indices
        values = postings.data if is_reciprocal else np.ones_like(postings.data)
        totals = np.zeros(len(self.sizes))
        best = np.zeros(len(answers))
        for task in range(len(totals)):
            for column in self.marks.indices[self.marks.indptr[task] : self.marks.indptr[task + 1]]:
                span = slice(starts[column], starts[column + 1])
                holders = rows[span]  # an answer holds an item once, so no row comes twice
                best[holders] = np.maximum(best[holders], values[span])
            totals[task] = best.sum()
            best.fill(0.0)
        return totals

    def _build_postings(self, answers: Sequence[Sequence[str]]) -> scipy.sparse.csc_matrix:
        found = [
            (row, self.columns[item], rank)
            for row, items in enumerate(answers)
            for rank, item in enumerate(items, start=1)
            if item in self.columns
        ]
        rows, columns, ranks = np.array(found, dtype=np.int64).reshape(-1, 3).T
        return scipy.sparse.csc_matrix(
            (1.0 / ranks, (rows, columns)), shape=(len(answers), len(self.items))
        )


def build_gold_table(tasks: Sequence[Task]) -> GoldTable:
    """Lay out the gold of all tasks over their distinct gold items."""
    golds = [task.gold_grades for task in tasks]
    items = tuple(sorted({item for gold in golds for item in gold}))
    columns = {item: column for column, item in enumerate(items)}
    grades = _build_rows(
        [{columns[item]: grade for item, grade in gold.items()} for gold in golds], len(items)
    )
    marks = grades.copy()
    marks.data = np.ones_like(marks.data)
    return GoldTable(items, columns, grades, marks, np.array([len(gold) for gold in golds], float))


def _build_rows(rows: Sequence[dict[int, float]], width: int) -> scipy.sparse.csr_matrix:
    ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
    columns = np.fromiter((column for row in rows for column in row), np.int32, ends[-1])
    values = np.fromiter((value for row in rows for value in row.values()), float, ends[-1])
    return scipy.sparse.csr_matrix((values, columns, ends), shape=(len(rows), width))
