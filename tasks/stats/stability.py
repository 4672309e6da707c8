"""How much the trials of one task agree. A constant answer is perfectly stable: print its too.

Answers are compared as sets: order and duplicates are no disagreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.stats.passk import pass_hat_k

Answer = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAgreement:
    """Agreement of trials, each in [0, 1] and averaged over tasks.

    `pairwise_exact`: share of pairs of trials with equal sets. `mean_jaccard`: their mean overlap,
    1 for two empty answers. `modal_share`: share of trials with the task's commonest answer.
    `all_agree`: share of tasks whose trials are all equal.
    """

    pairwise_exact: float
    mean_jaccard: float
    modal_share: float
    all_agree: float


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
        pairwise_exact=_mean_over_pairs(tasks, lambda first, second: float(first == second)),
        mean_jaccard=_mean_over_pairs(tasks, jaccard),
        modal_share=fmean(Counter(trials).most_common(1)[0][1] / len(trials) for trials in tasks),
        all_agree=fmean(float(len(set(trials)) == 1) for trials in tasks),
    )


def jaccard(first: Sequence[str] | frozenset[str], second: Sequence[str] | frozenset[str]) -> float:
    """Give the shared part of two sets over their union, 1 when both are empty."""
    one, two = frozenset(first), frozenset(second)
    union = len(one | two)
    return len(one & two) / union if union else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeStability:
    """How stable right and wrong are over trials.

    `agreement` is the mean share of agreeing pairs of trials, 1 - mean flip probability;
    `kappa` corrects it for chance and is None where all trials of all tasks came out the same;
    `pass_hat` gives, by k, the mean chance that k trials are all right.
    """

    agreement: float
    kappa: float | None
    pass_hat: dict[int, float]


def outcome_stability(
    outcomes: Sequence[Sequence[float]] | NDArray[np.float64],
) -> OutcomeStability | None:
    """Summarise the trials of a binary measure.

    Args:
        outcomes: Shape (tasks, trials), 0 or 1.

    Returns:
        None with a single trial or no task.
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] < 2:
        return None
    trials = table.shape[1]
    passes = [int(count) for count in table.sum(axis=1)]
    pairs = comb(trials, 2)
    return OutcomeStability(
        agreement=fmean((comb(k, 2) + comb(trials - k, 2)) / pairs for k in passes),
        kappa=fleiss_kappa([[k, trials - k] for k in passes]),
        pass_hat={
            k: fmean(pass_hat_k(trials, count, k) for count in passes) for k in range(1, trials + 1)
        },
    )


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float | None:
    """Give agreement over chance: (observed - expected)/(1 - expected).

    Args:
        counts: Per task how many trials fell into each category; the same number of trials each.

    Returns:
        None when all trials fell into one category: agreement is 1 and kappa 0/0.

    Source: Fleiss 1971.
    """
    table = np.asarray(counts, dtype=np.float64)
    trials = table.sum(axis=1)[0]
    observed = float(((table**2).sum(axis=1) - trials).mean() / (trials * (trials - 1)))
    expected = float(((table.sum(axis=0) / table.sum()) ** 2).sum())
    if expected >= 1:
        return None
    return (observed - expected) / (1 - expected)


def _mean_over_pairs(
    tasks: Sequence[Sequence[frozenset[str]]],
    compare: Callable[[frozenset[str], frozenset[str]], float],
) -> float:
    return fmean(
        fmean(compare(first, second) for first, second in combinations(trials, 2))
        for trials in tasks
    )
