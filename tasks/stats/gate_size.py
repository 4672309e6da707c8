"""How often a rule of rejection fires: its size under no change, its power under one.

A rule is tabulated once over all discordant counts and then weighted by their probability, so the
figures are exact and no simulation is needed.

Source: cf. Fagerland, Lydersen & Laake 2013 (BMC Med Res Methodol 13:91).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]


def tabulate_rule(n: int, rejects: Callable[[int, int], bool]) -> BoolArray:
    """Tabulate a rule over ups and downs.

    Args:
        n: Tasks.
        rejects: Whether the rule calls (up, down) of n a gain.

    Returns:
        Shape (n + 1, n + 1), indexed by discordant tasks and then by ups.
    """
    table = np.zeros((n + 1, n + 1), dtype=np.bool_)
    for discordant in range(n + 1):
        for up in range(discordant + 1):
            table[discordant, up] = rejects(up, discordant - up)
    return table


def rejection_rate(table: BoolArray, p_up: float, p_down: float) -> float:
    """Give the exact chance that the tabulated rule fires.

    Args:
        table: Of `tabulate_rule`.
        p_up: Chance that a task goes up; equal to `p_down` when nothing changed.
        p_down: Chance that it goes down; p_up + p_down <= 1.
    """
    counts = np.arange(len(table))
    discordance = p_up + p_down
    if discordance < 1e-100:  # SciPy overflows there, and no task would ever move
        return float(table[0, 0])
    weights = scipy.stats.binom.pmf(counts, len(table) - 1, discordance)
    ups = scipy.stats.binom.pmf(counts[None, :], counts[:, None], p_up / discordance)
    return float(weights @ (ups * table).sum(axis=1))
