"""What the best of a number of tuning trials is worth, by budget.

Valid for values from random search only: sequential tuning makes later trials depend on earlier
ones. Report the number of trials, the rule of selection, and the cost of tuning apart from that
of serving.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, fsum


def expected_best(values: Sequence[float], n: int) -> float:
    """Estimate the expected best of n trials, without bias: Σ v_(i) C(i-1, n-1)/C(B, n).

    Args:
        values: Scores of the B trials that were run.
        n: Budget, from 1 to B.

    Raises:
        ValueError: n exceeds B: the data say nothing beyond the trials that were run.

    Source: Tang et al. 2020 (arXiv:2004.13705).
    """
    _check(values, n)
    draws = comb(len(values), n)
    return fsum(value * comb(place, n - 1) / draws for place, value in enumerate(sorted(values)))


def expected_best_with_replacement(values: Sequence[float], n: int) -> float:
    """Estimate it by drawing with replacement, which is biased low; for comparison only.

    Raises:
        ValueError: There is no value, or n exceeds their number.

    Source: Dodge et al. 2019 (arXiv:1909.03004); 2021 (arXiv:2110.00613) on its error.
    """
    _check(values, n)
    total = len(values)
    return fsum(
        value * (((place + 1) / total) ** n - (place / total) ** n)
        for place, value in enumerate(sorted(values))
    )


def _check(values: Sequence[float], n: int) -> None:
    if not 1 <= n <= len(values):
        raise ValueError(f"a budget must be from 1 to the {len(values)} trials run, got {n}")
