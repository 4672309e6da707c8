"""From captures to scores: one row per task, arm and measure, none missing.

A missing or failed answer scores 0 and stays in the denominator. Trials are averaged per task
before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.measures import Measure

if TYPE_CHECKING:
    import polars as pl

METHOD_VERSION = "1"
"""Raised when a measure, a parser or the averaging changes the meaning of a stored score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one trial of one task came to, parsed. A failed one has no items, but a reason."""

    items: tuple[str, ...]
    is_infra: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswers:
    """All answers of one arm: task id → one entry per planned trial, None where missing."""

    name: str
    trials: int
    answers: Mapping[str, Sequence[Answered | None]] = field(default_factory=dict)

    def trials_of(self, task_id: str) -> Sequence[Answered | None]:
        """One entry per planned trial of a task, None where missing."""
        found = self.answers.get(task_id, ())
        return [*found, *([None] * (self.trials - len(found)))]


def score_arms(
    tasks: Sequence[Task], arms: Sequence[ArmAnswers], measures: Sequence[Measure]
) -> pl.DataFrame:
    """Score every planned answer.

    Returns:
        Columns arm, task_id, measure, cutoff (null without one), trials, value (mean over the
        planned trials, in [0, 1]), is_infra (any trial failed). One row per arm, task, measure.
    """
    import polars as pl

    rows = [
        (
            arm.name,
            task.id,
            measure.text,
            trial,
            score_answer(answered, task, measure),
            _is_infra(answered),
        )
        for arm in arms
        for task in tasks
        for trial, answered in enumerate(arm.trials_of(task.id))
        for measure in measures
    ]
    frame = pl.DataFrame(
        rows,
        schema={
            "arm": pl.String,
            "task_id": pl.String,
            "measure": pl.String,
            "trial": pl.Int32,
            "value": pl.Float64,
            "is_infra": pl.Boolean,
        },
        orient="row",
    )
    cutoffs = {measure.text: measure.cutoff for measure in measures}
    return (
        frame.group_by("arm", "task_id", "measure", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int32).alias("trials"),
            pl.col("value").mean(),
            pl.col("is_infra").any(),
        )
        .with_columns(
            pl.col("measure")
            .replace_strict(cutoffs, default=None, return_dtype=pl.Int32)
            .alias("cutoff")
        )
    )


def score_vector(frame: pl.DataFrame, arm: str, measure: str) -> NDArray[np.float64]:
    """The scores of one arm at one measure, in panel order: shape (tasks,)."""
    import polars as pl

    chosen = frame.filter((pl.col("arm") == arm) & (pl.col("measure") == measure))
    return chosen["value"].to_numpy().astype(np.float64)


def score_answer(answered: Answered | None, task: Task, measure: Measure) -> float:
    """Score one trial of one task, in [0, 1]; missing or failed scores 0."""
    if answered is None or answered.is_infra:
        return 0.0
    return measure.score(answered.items, task.gold_grades) or 0.0


def _is_infra(answered: Answered | None) -> bool:
    return answered is not None and answered.is_infra
