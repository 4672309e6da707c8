"""Answers and gold of a whole panel as sparse 0/1 tables, for the nulls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.measures import Measure

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GoldTable:
    """Gold of a panel as a table of grades.

    `grades` has shape (tasks, items) with the grade at gold items; `items` are the columns in
    text order, which is the tie rule of every null; `sizes` is the number of gold items per task.
    """

    items: tuple[str, ...]
    columns: dict[str, int]
    grades: scipy.sparse.csr_matrix
    marks: scipy.sparse.csr_matrix
    sizes: FloatArray

    def mark_answers(self, answers: Iterable[Sequence[str]]) -> scipy.sparse.csr_matrix:
        """Mark which gold items each answer holds: shape (answers, items), 0/1."""
        return _build_rows(
            [
                {self.columns[item]: 1.0 for item in answer if item in self.columns}
                for answer in answers
            ],
            len(self.items),
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


def require_gold(tasks: Sequence[Task], measure: Measure) -> None:
    """Refuse tasks that the measure cannot score.

    Raises:
        PanelError: A task's gold is empty and the measure is one of rankings.
    """
    if "set" in measure.answer_kinds:
        return
    for task in tasks:
        if not task.gold:
            raise PanelError(
                f"task {task.id} has no gold, so {measure.text} is undefined on it; score "
                "empty-gold tasks with a set measure (precision, recall, f1 or exact)"
            )


def _build_rows(rows: Sequence[dict[int, float]], width: int) -> scipy.sparse.csr_matrix:
    ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
    columns = np.fromiter((column for row in rows for column in row), np.int32, ends[-1])
    values = np.fromiter((value for row in rows for value in row.values()), float, ends[-1])
    return scipy.sparse.csr_matrix((values, columns, ends), shape=(len(rows), width))
