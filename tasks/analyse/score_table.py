"""From captures to scores: one row per task, arm and measure, none missing.

A missing or failed answer scores 0 and stays in the denominator. Trials are averaged per task
before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.analyse.measures import Measure
from tasks.records import Task

METHOD_VERSION = "1"
"""Raised when a measure, a parser or the averaging changes the meaning of a stored score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one trial of one task came to, parsed. A failed one has no items."""

    items: tuple[str, ...]
    is_infra: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswers:
    """All answers of one arm: task id → one entry per planned trial, None where missing."""

    name: str
    trials: int
    answers: Mapping[str, Sequence[Answered | None]] = field(default_factory=dict)


def score_arms(
    tasks: Sequence[Task], arms: Sequence[ArmAnswers], measures: Sequence[Measure]
) -> pl.DataFrame:
    """Score every planned answer.

    Returns:
        Columns arm, task_id, measure, cutoff (null without one), trials, value (mean over the
        planned trials, in [0, 1]), is_infra (any trial failed). One row per arm, task, measure.
    """
    rows = [
        (
            arm.name,
            task.id,
            measure.text,
            trial,
            _score(answered, task, measure),
            _is_infra(answered),
        )
        for arm in arms
        for task in tasks
        for trial, answered in enumerate(_trials(arm, task))
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
    chosen = frame.filter((pl.col("arm") == arm) & (pl.col("measure") == measure))
    return chosen["value"].to_numpy().astype(np.float64)


def _trials(arm: ArmAnswers, task: Task) -> Sequence[Answered | None]:
    found = arm.answers.get(task.id, ())
    return [*found, *([None] * (arm.trials - len(found)))]


def _score(answered: Answered | None, task: Task, measure: Measure) -> float:
    if answered is None or answered.is_infra:
        return 0.0
    return measure.score(answered.items, task.gold_grades) or 0.0


def _is_infra(answered: Answered | None) -> bool:
    return answered is not None and answered.is_infra
