"""f1: the harmonic mean of precision and recall of one task.

The mean over tasks is macro-F1, the mean of task F1s. It is not the F1 of the mean precision and
mean recall, nor micro-F1, and as a mean over tasks it can be tested on paired tasks.
Both empty scores 1, exactly one empty 0.

Source: van Rijsbergen 1979; the rule for empty sets is that of SQuAD 2.0 (Rajpurkar et al. 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def score_f1(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float:
    """Score 2·found/(answered + gold) over distinct items, in [0, 1]; f1 takes no cut-off."""
    del cutoff
    answered = set(items)
    if not answered and not gold:
        return 1.0
    return 2.0 * len(answered & gold.keys()) / (len(answered) + len(gold))
