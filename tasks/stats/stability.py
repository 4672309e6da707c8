"""How much the trials of one task agree, and what several trials of it are worth.

A constant answer is perfectly stable: print its too. Answers are compared as sets: order and
duplicates are no disagreement.

Source: Chen et al. 2021 (arXiv:2107.03374) for pass@k; Yao et al. 2024 (arXiv:2406.12045) for
pass^k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

Answer = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAgreement:
    """Agreement of trials, each in [0, 1] and averaged over tasks.

    `pairwise_exact`: share of pairs of trials with equal sets. `modal_share`: share of trials with
    the task's commonest answer.
    """

    pairwise_exact: float
    modal_share: float


def answer_agreement(answers: Sequence[Sequence[Answer]]) -> AnswerAgreement | None:
    """Compare the trials of every task.

    Args:
        answers: Per task its trials' answers; tasks with fewer than two trials are left out.

    Returns:
        None when no task has two trials: one trial shows nothing about stability.
    """
    tasks = [[frozenset(answer) for answer in trials] for trials in answers if len(trials) > 1]
    if not tasks:
        return None
    return AnswerAgreement(
        pairwise_exact=fmean(
            fmean(first == second for first, second in combinations(trials, 2)) for trials in tasks
        ),
        modal_share=fmean(Counter(trials).most_common(1)[0][1] / len(trials) for trials in tasks),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeStability:
    """How stable right and wrong are over trials.

    `agreement` is the mean share of agreeing pairs of trials, 1 - mean flip probability;
    `pass_hat` gives, by k, the mean chance that k trials are all right.
    """

    agreement: float
    pass_hat: dict[int, float]


def outcome_stability(outcomes: NDArray[np.float64]) -> OutcomeStability | None:
    """Summarise the trials of a binary measure.

    Args:
        outcomes: Shape (tasks, trials), 0 or 1.

    Returns:
        None with a single trial or no task.
    """
    tasks, trials = outcomes.shape
    if tasks == 0 or trials < 2:
        return None
    passes = [int(count) for count in outcomes.sum(axis=1)]
    pairs = comb(trials, 2)
    return OutcomeStability(
        agreement=fmean((comb(k, 2) + comb(trials - k, 2)) / pairs for k in passes),
        pass_hat={
            k: fmean(pass_hat_k(trials, count, k) for count in passes) for k in range(1, trials + 1)
        },
    )


def pass_at_k(n: int, successes: int, k: int) -> float:
    """Estimate the chance that at least one of k trials is right: 1 - C(n-c, k)/C(n, k).

    Unbiased, unlike 1 - (1 - c/n)^k, which is too low.

    Args:
        n: Trials of one task.
        successes: c, those that were right.
        k: From 1 to n.

    Raises:
        ValueError: k exceeds n, or the counts are impossible.
    """
    _check_trials(n, successes, k)
    return 1.0 - comb(n - successes, k) / comb(n, k)


def pass_hat_k(n: int, successes: int, k: int) -> float:
    """Estimate the chance that k trials are all right: C(c, k)/C(n, k).

    Raises:
        ValueError: k exceeds n, or the counts are impossible.
    """
    _check_trials(n, successes, k)
    return comb(successes, k) / comb(n, k)


def _check_trials(n: int, successes: int, k: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials are impossible")
    if not 1 <= k <= n:
        raise ValueError(f"k must be from 1 to the {n} trials that were run, got {k}; run more")
