"""From captures to scores: one row per task, arm and measure, none missing.

A missing or failed answer scores 0 and stays in the denominator. Trials are averaged per task
before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.config import ArmConfig, ProcessArm
from coldrun.tasks.judge.spending import tokens_of
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.records import AnswerKind, Task
from coldrun.tasks.run.capture import Capture
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


def read_answer(capture: Capture, arm: ArmConfig, kind: AnswerKind) -> Answered:
    """Read the items out of a stored raw answer, at scoring time: a parser may be mended.

    A failure of the tool has no items, whatever it said; an answer that cannot be read is one.
    """
    if capture.is_infra:
        return Answered(items=(), is_infra=True, reason=capture.reply.reason)
    if capture.reply.status == "abstained" or capture.reply.raw is None:
        return Answered(items=())
    parsed = parse_answer(capture.reply.raw, arm, answer=kind, corpus_dir=capture.corpus_dir)
    return Answered(items=parsed.items, is_infra=parsed.problem is not None, reason=parsed.problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswers:
    """One arm with all its answers.

    `answers`: task id → one entry per planned trial, None where missing. `captures` may hold trials
    that were not planned.
    """

    config: ArmConfig
    captures: Sequence[Capture]
    trials: int
    answers: Mapping[str, Sequence[Answered | None]]

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.config.name

    @property
    def infra(self) -> int:
        """How many answers failed in the tool itself."""
        return sum(
            answered is not None and answered.is_infra
            for trials in self.answers.values()
            for answered in trials
        )

    @property
    def mean_seconds(self) -> float | None:
        """Mean seconds of executed answers; None when none was executed."""
        seconds = [
            capture.reply.seconds
            for capture in self.captures
            if capture.evidence == "executed" and not capture.is_infra
        ]
        return fmean(seconds) if seconds else None

    def among(self, tasks: Sequence[Task]) -> ArmAnswers:
        """The same of some tasks alone."""
        ids = {task.id for task in tasks}
        return replace(
            self,
            captures=[capture for capture in self.captures if capture.task_id in ids],
            answers={name: trials for name, trials in self.answers.items() if name in ids},
        )

    def trials_of(self, task_id: str) -> Sequence[Answered | None]:
        """One entry per planned trial of a task, None where missing."""
        return self.answers.get(task_id) or [None] * self.trials

    def items_of_trial(self, trial: int) -> dict[str, tuple[str, ...]]:
        """The items of each answered task in one trial; empty where the trial is missing."""
        return {
            task_id: () if (mine := trials[trial]) is None else mine.items
            for task_id, trials in self.answers.items()
        }


def read_arm(
    arm: ArmConfig, captures: Sequence[Capture], *, trials: int, kind: AnswerKind
) -> ArmAnswers:
    """Read all answers of one arm."""
    found: dict[str, list[Answered | None]] = {}
    for capture in captures:
        if capture.trial < trials:
            slots = found.setdefault(capture.task_id, [None] * trials)
            slots[capture.trial] = read_answer(capture, arm, kind)
    return ArmAnswers(config=arm, captures=captures, trials=trials, answers=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredArm:
    """One arm with its scores at the primary measure, in panel order.

    `captures` are those of planned trials. `noise_tasks` is the band within which two runs of it
    differ, 0 where it is not known. `is_comparable` is false where its score is withheld.
    """

    config: ArmConfig
    captures: Sequence[Capture]
    trials: int
    scores: FloatArray
    noise_tasks: float
    is_comparable: bool

    @property
    def asks_model(self) -> bool:
        """Whether it could have used tokens; built-in arms ask no model."""
        return isinstance(self.config, ProcessArm)

    @property
    def has_tokens(self) -> bool:
        """Whether any attempt told what it used."""
        return any(
            tokens_of(attempt) for capture in self.captures for attempt in capture.reply.attempts
        )


def score_arms(
    tasks: Sequence[Task], arms: Sequence[ArmAnswers], measures: Sequence[Measure]
) -> pl.DataFrame:
    """Score every planned answer: one row per arm, task and measure.

    `value` is the mean over the planned trials; `is_infra` says that any of them failed.
    """
    import polars as pl

    rows = [
        (
            arm.name,
            task.id,
            measure.text,
            measure.cutoff,
            score_answer(answered, task, measure),
            answered is not None and answered.is_infra,
        )
        for arm in arms
        for task in tasks
        for answered in arm.trials_of(task.id)
        for measure in measures
    ]
    schema = {
        "arm": pl.String,
        "task_id": pl.String,
        "measure": pl.String,
        "cutoff": pl.Int32,
        "value": pl.Float64,
        "is_infra": pl.Boolean,
    }
    return (
        pl.LazyFrame(rows, schema=schema, orient="row")
        .group_by("arm", "task_id", "measure", "cutoff", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int32).alias("trials"),
            pl.col("value").mean(),
            pl.col("is_infra").any(),
        )
        .collect()
    )


def score_vectors(scores: pl.DataFrame) -> dict[str, dict[str, FloatArray]]:
    """The scores by measure and arm, in panel order: shape (tasks,)."""
    vectors: dict[str, dict[str, FloatArray]] = {}
    parts = scores.partition_by("measure", "arm", as_dict=True, maintain_order=True)
    for (measure, arm), part in parts.items():
        vectors.setdefault(measure, {})[arm] = part["value"].to_numpy().astype(np.float64)
    return vectors


def score_answer(answered: Answered | None, task: Task, measure: Measure) -> float:
    """Score one trial of one task, in [0, 1]; missing or failed scores 0."""
    if answered is None or answered.is_infra:
        return 0.0
    return measure.score(answered.items, task.gold_grades) or 0.0
