"""How much the trials of one task agree, and what several of them are worth.

A constant answer is perfectly stable: print its too. Answers are compared as sets. Coverage (some
sample is right) goes to 1 with the number of samples; accuracy stops at the precision of the
verifier. Both are averaged over tasks: a formula on the mean rate overstates.

Source: Chen et al. 2021 (arXiv:2107.03374) for pass@k; Yao et al. 2024 (arXiv:2406.12045) for
pass^k; Stroebl, Kapoor & Narayanan 2024 (arXiv:2411.17501) for verifiers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import comb, fsum
from statistics import fmean

import numpy as np
from numpy.typing import NDArray


def answer_agreement(answers: Sequence[Sequence[Sequence[str]]]) -> dict[str, float]:
    """Compare the answers of the trials of every task; empty when no task has two trials.

    `answer_agreement` is the mean share of pairs of trials with equal sets, `modal_share` the mean
    share of trials with the task's commonest answer.
    """
    tasks = [[frozenset(answer) for answer in trials] for trials in answers if len(trials) > 1]
    if not tasks:
        return {}
    return {
        "answer_agreement": fmean(
            fmean(first == second for first, second in combinations(trials, 2)) for trials in tasks
        ),
        "modal_share": fmean(
            Counter(trials).most_common(1)[0][1] / len(trials) for trials in tasks
        ),
    }


def outcome_stability(outcomes: NDArray[np.float64]) -> dict[str, float]:
    """Summarise a binary measure, shape (tasks, trials); empty with one trial or no task.

    `outcome_agreement` is the mean share of agreeing pairs of trials, `pass^k` the mean chance
    that k trials are all right.
    """
    tasks, trials = outcomes.shape
    if tasks == 0 or trials < 2:
        return {}
    passes, pairs = [int(count) for count in outcomes.sum(axis=1)], comb(trials, 2)
    agreement = fmean((comb(k, 2) + comb(trials - k, 2)) / pairs for k in passes)
    return {"outcome_agreement": agreement} | {
        f"pass^{k}": fmean(pass_hat_k(trials, count, k) for count in passes)
        for k in range(1, trials + 1)
    }


def pass_at_k(n: int, successes: int, k: int) -> float:
    """Estimate the chance that at least one of k trials is right: 1 - C(n-c, k)/C(n, k).

    Unbiased, unlike 1 - (1 - c/n)^k, which is too low.
    """
    _check_trials(n, successes, k)
    return 1.0 - comb(n - successes, k) / comb(n, k)


def pass_hat_k(n: int, successes: int, k: int) -> float:
    """Estimate the chance that k trials are all right: C(c, k)/C(n, k)."""
    _check_trials(n, successes, k)
    return comb(successes, k) / comb(n, k)


def _check_trials(n: int, successes: int, k: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials are impossible")
    if not 1 <= k <= n:
        raise ValueError(f"k must be from 1 to the {n} trials that were run, got {k}; run more")


def verified_accuracy(
    right: int, samples: int, *, true_accept: float, false_accept: float
) -> float:
    """Give the chance that the first sample that a verifier takes is right.

    It looks at the samples in random order, and answers nothing when it takes none.
    """
    wrong = samples - right
    return fsum(
        _binomial(right, taken, true_accept)
        * _binomial(wrong, mistaken, false_accept)
        * taken
        / (taken + mistaken)
        for taken in range(1, right + 1)
        for mistaken in range(wrong + 1)
    )


def mean_verified_accuracy(
    successes: Sequence[int], trials: int, k: int, *, true_accept: float, false_accept: float
) -> float:
    """Estimate, without bias, what k samples and a verifier come to, averaged over tasks.

    A verifier that never errs gives coverage, the mean of pass@k.
    """
    if not 1 <= k <= trials:
        raise ValueError(f"k must be from 1 to the {trials} trials that were run, got {k}")
    by_right = [
        verified_accuracy(right, k, true_accept=true_accept, false_accept=false_accept)
        for right in range(k + 1)
    ]
    ways = comb(trials, k)
    return fmean(
        fsum(
            comb(count, right) * comb(trials - count, k - right) / ways * value
            for right, value in enumerate(by_right)
        )
        for count in successes
    )


def _binomial(n: int, count: int, p: float) -> float:
    return comb(n, count) * p**count * (1 - p) ** (n - count)
