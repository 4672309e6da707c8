"""The answers of a run as they are scored, and its arms with their scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.config import ArmConfig, ProcessArm
from coldrun.tasks.judge.score_table import Answered
from coldrun.tasks.judge.spending import tokens_of
from coldrun.tasks.lib.records import AnswerKind
from coldrun.tasks.run.capture import Capture

FloatArray = NDArray[np.float64]
ParseAnswer = Callable[[Capture, ArmConfig, AnswerKind], Answered]
"""Reads the items out of a stored raw answer; a parser may be mended without a new run."""


def read_capture(
    capture: Capture, arm: ArmConfig, kind: AnswerKind, parse: ParseAnswer
) -> Answered:
    """What an arm answered; a failure of the tool is none, whatever it said."""
    if capture.is_infra:
        return Answered(items=(), is_infra=True, reason=capture.reply.reason)
    return parse(capture, arm, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredArm:
    """One arm with its scores at the primary measure, in panel order.

    `noise_tasks` is the band within which two runs of it differ, 0 where it is not known.
    `is_comparable` is false where its score is withheld.
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
