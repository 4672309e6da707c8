"""Repeated sampling: what several trials are worth, with a verifier that errs choosing among them.

Coverage (some sample is right) goes to 1 with the number of samples; accuracy stops at the
precision of the verifier. Both are averaged over tasks: a formula on the mean rate overstates.

Source: Stroebl, Kapoor & Narayanan 2024 (arXiv:2411.17501); Brown et al. 2024 (arXiv:2407.21787).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, fsum
from statistics import fmean


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
