"""Too good or too stable to be true: each check gives a warning with its figures, or None.

A warning is a question to the reader and changes no verdict. Equal scores alone are none: a
deterministic arm always repeats its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from coldrun.tasks.stats.integrity import (
    bound_mrr,
    compare_dev_sealed,
    describe_pace,
    find_min_runs,
    is_percentage_possible,
)

FASTEST_RATIO = 0.5
"""A run faster than this share of the median of earlier runs is questioned."""

FEWEST_EARLIER = 3
"""Values of an arm's history needed before a jump can be judged."""

REPEATED_SHARE = 0.5
"""Share of equal latencies, to the last digit, above which a run is questioned."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A warning: the name of the check, and a sentence with figures."""

    check: str
    text: str


def check_percentage(name: str, percentage: float, n: int, *, decimals: int = 0) -> Alert | None:
    """Question a printed percentage that no count of n tasks gives (GRIM)."""
    if is_percentage_possible(percentage, n, decimals=decimals):
        return None
    runs = find_min_runs(percentage, n, decimals=decimals)
    return Alert(
        "grim",
        f"{name} of {percentage}% is impossible for one run of {n} tasks; it would take at least "
        f"{runs} runs averaged, or another n",
    )


def check_monotone(name: str, hits: Mapping[int, float]) -> Alert | None:
    """Question hits that fall as the cut-off grows.

    Args:
        hits: Tasks, or rates, by cut-off.
    """
    for (near, first), (deep, second) in pairwise(sorted(hits.items())):
        if first > second + 1e-12:
            return Alert(
                "monotone",
                f"{name}: hit@{near} is {first:g} but hit@{deep} only {second:g}; a deeper cut "
                "cannot lose a hit, so they come from different answers",
            )
    return None


def check_mrr(
    name: str, mrr: float, *, cutoff: int, n: int, hits: Mapping[int, int], decimals: int = 12
) -> Alert | None:
    """Question an MRR outside what the hits allow.

    Args:
        mrr: mrr@cutoff, rounded to `decimals`.
        hits: Tasks with a hit by cut-off; only cut-offs up to `cutoff` bound it.
    """
    usable = {depth: found for depth, found in hits.items() if depth <= cutoff}
    if not usable or check_monotone(name, usable) is not None:
        return None
    bounds = bound_mrr(n, usable)
    is_cut = cutoff in usable
    if bounds.is_possible(mrr, decimals=decimals, is_cut=is_cut):
        return None
    high = bounds.high if is_cut else bounds.high_uncut
    return Alert(
        "mrr_bounds",
        f"{name}: mrr@{cutoff} {mrr:.4g} lies outside {bounds.low:.4g} to {high:.4g}, which its "
        "hits allow; one of them has another cut-off",
    )


def check_dev_sealed(name: str, dev: tuple[int, int], sealed: tuple[int, int]) -> Alert | None:
    """Question a dev part that is clearly easier than the sealed one, each as (hits, tasks)."""
    gap = compare_dev_sealed(dev, sealed)
    if not gap.interval.is_above(0):
        return None
    return Alert(
        "dev_sealed_gap",
        f"{name} has {dev[0]} of {dev[1]} on dev but {sealed[0]} of {sealed[1]} on the sealed "
        f"part: {100 * gap.difference:.1f} percentage points (95% from "
        f"{100 * gap.interval.low:.1f} to {100 * gap.interval.high:.1f}, p = {gap.p:.2g}); dev may "
        "have been tuned on",
    )


def check_jump(name: str, value: float, earlier: Sequence[float]) -> Alert | None:
    """Question a change larger than any the arm has made before.

    Args:
        value: The new score, in the unit of `earlier`.
        earlier: The arm's scores so far, oldest first; fewer than three say nothing.
    """
    if len(earlier) < FEWEST_EARLIER:
        return None
    largest = max(abs(after - before) for before, after in pairwise(earlier))
    jump = value - earlier[-1]
    if abs(jump) <= largest + 1e-12:
        return None
    return Alert(
        "jump",
        f"{name} moved by {jump:+.4g} to {value:.4g}; the largest of its {len(earlier) - 1} "
        f"earlier changes was {largest:.4g}",
    )


def check_pace(
    name: str, elapsed_seconds: float, tasks: int, earlier_seconds: Sequence[float]
) -> Alert | None:
    """Question a run that took less than half the median time of earlier ones."""
    if tasks < 1 or not earlier_seconds or max(earlier_seconds) <= 0:
        return None
    pace = describe_pace(elapsed_seconds, tasks, earlier_seconds)
    if pace.ratio_to_median is None or pace.ratio_to_median >= FASTEST_RATIO:
        return None
    return Alert(
        "pace",
        f"{name} took {elapsed_seconds:.1f} s, {pace.seconds_per_task:.2f} s a task and "
        f"{pace.ratio_to_median:.0%} of the median of {len(earlier_seconds)} earlier runs; did it "
        "run?",
    )


def check_repeated_seconds(
    name: str, seconds: Sequence[float], earlier_seconds: Sequence[float]
) -> Alert | None:
    """Question answer times that equal an earlier run's to the last digit, task by task."""
    pairs = [(new, old) for new, old in zip(seconds, earlier_seconds, strict=False) if new > 0]
    equal = sum(new == old for new, old in pairs)
    if not pairs or equal / len(pairs) <= REPEATED_SHARE:
        return None
    return Alert(
        "repeated_seconds",
        f"{name}: {equal} of {len(pairs)} answer times equal those of an earlier run to the last "
        "digit; these are its answers, replayed",
    )


def check_free_score(
    name: str, *, cost_usd: float | None, calls: int, score: float
) -> Alert | None:
    """Question an arm that calls a model, scores, and reports no cost; None is not reported."""
    if cost_usd is None or cost_usd > 0 or calls == 0 or score <= 0:
        return None
    return Alert(
        "free_score",
        f"{name} scores {score:.4g} with {calls} model calls at no cost; were they made?",
    )


def check_null_lead(name: str, score: float, nulls: Mapping[str, float]) -> Alert | None:
    """Question a score that a null reaches or exceeds."""
    if not nulls:
        return None
    best = max(nulls, key=lambda null: nulls[null])
    if nulls[best] < score - 1e-12:
        return None
    return Alert("null_lead", f"{name} scores {score:.4g}, {best} scores {nulls[best]:.4g}")


def check_total(name: str, total: int, parts: Mapping[str, int]) -> Alert | None:
    """Question parts that do not add up to their total."""
    found = sum(parts.values())
    if found == total:
        return None
    listed = " + ".join(f"{part} {count}" for part, count in parts.items())
    return Alert("total", f"{name}: {listed} = {found}, not {total}")
