"""What the trials of one run say: how stable an arm is, and its noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.judge.score_table import ArmAnswers, score_answer
from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.measures import Measure
from coldrun.tasks.stats.noise import NoiseFloor, estimate_noise_floor
from coldrun.tasks.stats.stability import answer_agreement, outcome_stability

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Stability in [0, 1] by name, and the noise floor; both empty with a single trial.

    Names: `outcome_agreement` (share of agreeing pairs of trials), `answer_agreement` (pairs with
    the very same items), `modal_share`, and `pass^k` up to the number of trials.
    """

    stability: dict[str, float | None]
    floor: NoiseFloor | None


def describe_repeats(tasks: Sequence[Task], arm: ArmAnswers, measure: Measure) -> Repeats:
    """Describe how much an arm's trials differ, at a measure where each trial is right or wrong.

    A graded measure counts as right when it is above 0. With one trial nothing is known, and
    nothing is said.
    """
    if arm.trials < 2 or not tasks:
        return Repeats(stability={}, floor=None)
    outcomes = trial_outcomes(tasks, arm, measure)
    stability: dict[str, float | None] = {}
    by_outcome = outcome_stability(outcomes)
    if by_outcome is not None:
        stability["outcome_agreement"] = by_outcome.agreement
        stability.update({f"pass^{k}": value for k, value in by_outcome.pass_hat.items()})
    by_answer = answer_agreement(
        [
            [answered.items for answered in arm.trials_of(task.id) if answered is not None]
            for task in tasks
        ]
    )
    if by_answer is not None:
        stability["answer_agreement"] = by_answer.pairwise_exact
        stability["modal_share"] = by_answer.modal_share
    return Repeats(stability=stability, floor=estimate_noise_floor(outcomes.T))


def trial_outcomes(tasks: Sequence[Task], arm: ArmAnswers, measure: Measure) -> FloatArray:
    """Right or wrong by task and trial: shape (tasks, trials), 0 or 1; missing is wrong."""
    return np.array(
        [
            [
                float(score_answer(answered, task, measure) > 0)
                for answered in arm.trials_of(task.id)
            ]
            for task in tasks
        ],
        dtype=np.float64,
    )
