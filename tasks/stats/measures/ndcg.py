"""ndcg@k: discounted cumulative gain over that of the ideal ranking of gold.

Linear gain, the grade itself, and the discount 1/log2(rank + 1), as in trec_eval, ir_measures and
ranx. The exponential gain 2^grade - 1 (`ndcg_burges` of ranx, `dcg='exp-log2'` of ir_measures)
differs as soon as grades exceed 1, and is available to callers for comparison.

Source: Järvelin & Kekäläinen 2002; Burges et al. 2005 for the exponential gain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from coldrun.tasks.stats.measures.ranks import cut_items

Gain = Literal["linear", "exponential"]


def score_ndcg(
    items: Sequence[str],
    gold: Mapping[str, float],
    cutoff: int | None,
    gain: Gain = "linear",
) -> float | None:
    """Score the gain of the first `cutoff` distinct items over the most that they could have.

    Returns:
        A value in [0, 1]; None when gold is empty: empty-gold tasks go to set measures only.
    """
    if not gold:
        return None
    gained = [gold.get(item, 0.0) for item in cut_items(items, cutoff)]
    ideal = sorted(gold.values(), reverse=True)[:cutoff]
    # min: the two sums may round apart in the last place for a perfect ranking
    return min(1.0, _discount(gained, gain) / _discount(ideal, gain))


def _discount(grades: Sequence[float], gain: Gain) -> float:
    if gain == "exponential":
        grades = [2.0**grade - 1.0 for grade in grades]
    return math.fsum(
        grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1) if grade
    )
