"""pass@k and pass^k: at least one, and every one, of k trials right.

Source: Chen et al. 2021 (arXiv:2107.03374) for pass@k; Yao et al. 2024 (arXiv:2406.12045) for
pass^k.
"""

from __future__ import annotations

from math import comb


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
    _check(n, successes, k)
    return 1.0 - comb(n - successes, k) / comb(n, k)


def pass_hat_k(n: int, successes: int, k: int) -> float:
    """Estimate the chance that k trials are all right: C(c, k)/C(n, k).

    Raises:
        ValueError: k exceeds n, or the counts are impossible.
    """
    _check(n, successes, k)
    return comb(successes, k) / comb(n, k)


def _check(n: int, successes: int, k: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials are impossible")
    if not 1 <= k <= n:
        raise ValueError(f"k must be from 1 to the {n} trials that were run, got {k}; run more")
