"""Best of k samples chosen by a verifier that errs.

Coverage (some sample is right) goes to 1 with k; accuracy goes to the verifier's precision.
Average over tasks: the formula on the mean p overstates.

Source: Stroebl, Kapoor & Narayanan 2024 (arXiv:2411.17501); Brown et al. 2024 (arXiv:2407.21787).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb, fsum
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfK:
    """What k samples and a verifier come to on one task.

    `accept_rate` is how often the verifier takes a sample, `precision` how often it is right then
    (None when it never takes one). `accuracy_abstaining` answers nothing when no sample is taken,
    `accuracy_falling_back` a random rejected one. `expected_samples` stops at the first taken.
    """

    coverage: float
    accept_rate: float
    precision: float | None
    answered: float
    accuracy_abstaining: float
    accuracy_falling_back: float
    expected_samples: float


def best_of_k(p: float, *, true_accept: float, false_accept: float, k: int) -> BestOfK:
    """Compute best-of-k for a task whose samples are right with probability p, independently.

    Args:
        p: Chance that a sample is right.
        true_accept: Chance that the verifier takes a right sample.
        false_accept: Chance that it takes a wrong one.
        k: Samples at most, from 1.

    Raises:
        ValueError: A probability is outside [0, 1], or k below 1.
    """
    if not all(0 <= value <= 1 for value in (p, true_accept, false_accept)) or k < 1:
        raise ValueError(
            f"best of k needs probabilities in [0, 1] and k from 1: p {p}, true_accept "
            f"{true_accept}, false_accept {false_accept}, k {k}"
        )
    accept = p * true_accept + (1 - p) * false_accept
    none_taken = (1 - accept) ** k
    precision = p * true_accept / accept if accept > 0 else None
    accuracy = (1 - none_taken) * (precision or 0.0)
    rescued = none_taken * p * (1 - true_accept) / (1 - accept) if accept < 1 else 0.0
    return BestOfK(
        coverage=1 - (1 - p) ** k,
        accept_rate=accept,
        precision=precision,
        answered=1 - none_taken,
        accuracy_abstaining=accuracy,
        accuracy_falling_back=accuracy + rescued,
        expected_samples=(1 - none_taken) / accept if accept > 0 else float(k),
    )


def mean_best_of_k(
    p_per_task: Sequence[float], *, true_accept: float, false_accept: float, k: int
) -> float:
    """Average the abstaining accuracy over tasks, each with its own p."""
    return fmean(
        best_of_k(p, true_accept=true_accept, false_accept=false_accept, k=k).accuracy_abstaining
        for p in p_per_task
    )


def best_of_stored(scores: Sequence[float], correct: Sequence[float], k: int) -> float:
    """Estimate the accuracy of taking the best-scored of k out of the stored samples.

    The mean over all subsets of k samples; a tie for the best score is broken at random.

    Args:
        scores: The verifier's score of each stored sample.
        correct: Whether each is right, 0 or 1.
        k: From 1 to the number of samples.

    Raises:
        ValueError: The lengths differ, or k exceeds the samples.
    """
    n = len(scores)
    if n != len(correct) or not 1 <= k <= n:
        raise ValueError(f"k must be from 1 to the {n} stored samples, got {k}")
    ranked = sorted(zip(scores, correct, strict=True), key=lambda pair: -pair[0])
    total, above = [], 0
    for _, group in groupby(ranked, key=lambda pair: pair[0]):
        outcomes = [outcome for _, outcome in group]
        below = n - above - len(outcomes)
        chance = (comb(n - above, k) - comb(below, k)) / comb(n, k)
        total.append(chance * fmean(outcomes))
        above += len(outcomes)
    return fsum(total)
