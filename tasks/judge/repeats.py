"""What the trials of one run say: stability, the noise floor, and what more trials buy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from coldrun.tasks.judge.report_model import BudgetPart
from coldrun.tasks.judge.score_table import ArmAnswers, score_answer
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.measures import Measure
from coldrun.tasks.stats.noise import PooledFloor, pool_noise_floor
from coldrun.tasks.stats.stability import (
    answer_agreement,
    mean_verified_accuracy,
    outcome_stability,
    pass_at_k,
)

VERIFIER_ERRORS = (0.05, 0.2)
"""How often the verifiers of a sampling budget err: take a wrong answer, or refuse a right one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """What trials show; all empty with a single trial.

    Names of `stability`: `outcome_agreement` (share of agreeing pairs of trials),
    `answer_agreement` (pairs with the same items), `modal_share`, and `pass^k` up to the trials.
    """

    stability: dict[str, float | None] = field(default_factory=dict)
    floor: PooledFloor | None = None
    budgets: list[BudgetPart] = field(default_factory=list)


def describe_repeats(tasks: Sequence[Task], arm: ArmAnswers, measure: Measure) -> Repeats:
    """Describe how much an arm's trials differ, at a measure where each trial is right or wrong.

    A graded measure counts as right when it is above 0. A missing or failed trial is wrong. With
    one trial nothing is known.
    """
    if arm.trials < 2 or not tasks:
        return Repeats()
    outcomes = np.array(
        [
            [score_answer(answered, task, measure) > 0 for answered in arm.trials_of(task.id)]
            for task in tasks
        ],
        dtype=np.float64,
    )
    answers = [
        [answered.items for answered in arm.trials_of(task.id) if answered is not None]
        for task in tasks
    ]
    return Repeats(
        stability={**outcome_stability(outcomes), **answer_agreement(answers)},
        floor=pool_noise_floor([outcomes.T]),
        budgets=_describe_budgets(outcomes),
    )


def _describe_budgets(outcomes: FloatArray) -> list[BudgetPart]:
    trials = outcomes.shape[1]
    successes = [int(count) for count in outcomes.sum(axis=1)]
    sizes = sorted({2**power for power in range(trials.bit_length())} | {trials})
    return [
        BudgetPart(
            samples=k,
            coverage=fmean(pass_at_k(trials, count, k) for count in successes),
            verified={
                f"{error:g}": mean_verified_accuracy(
                    successes, trials, k, true_accept=1 - error, false_accept=error
                )
                for error in VERIFIER_ERRORS
            },
        )
        for k in sizes
    ]
