"""Power of the exact paired test, and the smallest effect that a panel can show.

Source: exact unconditional power, cf. Connor 1987 (Biometrics 43:207) and Miettinen 1968; Miller
2024 (arXiv:2411.00640) for graded measures.
"""

from __future__ import annotations

import numpy as np
import scipy

from coldrun.tasks.lib.arrays import FloatArray


def find_critical_ups(n: int, *, alpha: float = 0.025) -> FloatArray:
    """Find, for each number m of discordant pairs up to n, the fewest ups with p <= alpha.

    m + 1 where no number of ups reaches `alpha`.
    """
    critical = np.ones(n + 1)
    ups = 1
    for discordant in range(1, n + 1):
        # P(Bin >= ups) grows with the pairs, so that the fewest ups never fall
        while ups <= discordant and scipy.special.bdtrc(ups - 1, discordant, 0.5) > alpha:
            ups += 1
        critical[discordant] = ups
    return critical


def exact_power(
    n: int,
    p_up: float,
    p_down: float,
    *,
    alpha: float = 0.025,
    critical: FloatArray | None = None,
) -> float:
    """Give the probability that the exact paired test shows a gain.

    The sum over discordant m of Bin(m; n, p_up + p_down) x P(Bin(m, p_up share) >= critical).
    """
    discordance = p_up + p_down
    if min(p_up, p_down) < 0 or discordance > 1 + 1e-12:
        raise ValueError(
            f"p_up {p_up} and p_down {p_down} must not be negative nor exceed 1 together"
        )
    if discordance < 1e-100:  # SciPy overflows there, and no task would ever move
        return 0.0
    needed = find_critical_ups(n, alpha=alpha) if critical is None else critical
    discordant = np.arange(n + 1)
    weights = _binomial_weights(n, min(1.0, discordance))
    reach = scipy.special.bdtrc(needed - 1.0, discordant, p_up / discordance)
    return float(weights @ np.where(needed > discordant, 0.0, reach))


def _binomial_weights(n: int, p: float) -> FloatArray:
    m = np.arange(n + 1)
    special = scipy.special
    ways = special.gammaln(n + 1) - special.gammaln(m + 1) - special.gammaln(n - m + 1)
    weights: FloatArray = np.exp(ways + special.xlogy(m, p) + special.xlog1py(n - m, -p))
    return weights


def minimum_detectable_effect(
    n: int, *, regression_rate: float = 0.0, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Find the true net gain, in tasks, that the exact test shows with the wanted power.

    `alpha` is two-sided. None when even a gain on every task that does not regress is not shown.
    """
    critical = find_critical_ups(n, alpha=alpha / 2)
    ceiling = 1.0 - regression_rate

    def exceed(p_up: float) -> float:
        return exact_power(n, p_up, regression_rate, critical=critical) - power

    if n < 1 or exceed(ceiling) < 0:
        return None
    p_up = float(scipy.optimize.brentq(exceed, 0.0, ceiling, xtol=1e-12))
    return n * (p_up - regression_rate)
