"""What a careful reader would doubt in a run: too good or too stable to be true. Pure.

A warning is a question to the reader and changes no verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from coldrun.tasks.judge.report_model import ArmPart, MeasurePart
from coldrun.tasks.judge.score_table import ArmAnswers
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.run_record import EarlierRuns
from coldrun.tasks.stats.intervals import bound_mrr
from coldrun.tasks.stats.measures import parse_measure

FASTER_THAN_HISTORY = 0.2
"""A median answer time below this share of the arm's own history is questioned."""

FEWEST_EARLIER = 3
"""Values of an arm's history needed before a jump can be judged."""

FEWEST_ANSWERS = 5
"""Fewer answers than this say nothing about repeated times or answers."""


def doubt_arm(
    arm: ArmPart, answers: ArmAnswers, earlier: EarlierRuns, *, primary: str
) -> Iterator[str]:
    """Every doubt about one executed arm."""
    executed = [capture for capture in answers.captures if capture.evidence == "executed"]
    answered = [capture for capture in executed if not capture.is_infra]
    yield from _doubt_times(arm.name, answered, earlier)
    yield from _doubt_constant(answers)
    alerts = [
        check_monotone(arm.name, _hits(arm.measures)),
        *_doubt_mrr(arm),
        check_jump(f"{arm.name} {primary}", arm.measures[primary].value, earlier.scores),
    ]
    yield from (alert for alert in alerts if alert is not None)


def _doubt_times(name: str, answered: Sequence[Capture], earlier: EarlierRuns) -> Iterator[str]:
    seconds = [round(capture.reply.seconds, 6) for capture in answered]
    if len(seconds) < FEWEST_ANSWERS:
        return
    time, number = Counter(seconds).most_common(1)[0]
    if number > len(seconds) / 2 and time > 0.001:
        yield (
            f"{name}: {number} of {len(seconds)} answers took {time:.6f} s to the microsecond; "
            "such times are written by a program, not by a clock"
        )
    if earlier.median_seconds:
        usual = median(earlier.median_seconds)
        mine = median(seconds)
        if mine < FASTER_THAN_HISTORY * usual:
            yield (
                f"{name}: the median answer took {mine:.4f} s, in {len(earlier.median_seconds)} "
                f"earlier runs {usual:.4f} s; did it run?"
            )


def _doubt_constant(arm: ArmAnswers) -> Iterator[str]:
    given = {
        task_id: answered.items
        for task_id, trials in arm.answers.items()
        for answered in trials
        if answered is not None and not answered.is_infra
    }
    if len(given) >= FEWEST_ANSWERS and len(set(given.values())) == 1:
        yield f"{arm.name}: one and the same answer to all {len(given)} tasks asked"


def _hits(measures: Mapping[str, MeasurePart]) -> dict[int, int]:
    found = {}
    for text, part in measures.items():
        measure = parse_measure(text)
        if measure.name == "hit" and measure.cutoff is not None and part.count is not None:
            found[measure.cutoff] = part.count
    return found


def _doubt_mrr(arm: ArmPart) -> Iterator[str | None]:
    hits = _hits(arm.measures)
    for text, part in arm.measures.items():
        measure = parse_measure(text)
        if measure.name == "mrr" and measure.cutoff is not None and hits:
            yield check_mrr(arm.name, part.value, cutoff=measure.cutoff, n=arm.n, hits=hits)


def check_monotone(name: str, hits: Mapping[int, float]) -> str | None:
    """Question hits that fall as the cut-off grows."""
    for (near, first), (deep, second) in pairwise(sorted(hits.items())):
        if first > second + 1e-12:
            return (
                f"{name}: hit@{near} is {first:g} but hit@{deep} only {second:g}; a deeper cut "
                "cannot lose a hit, so they come from different answers"
            )
    return None


def check_mrr(
    name: str, mrr: float, *, cutoff: int, n: int, hits: Mapping[int, int], decimals: int = 12
) -> str | None:
    """Question an MRR, rounded to `decimals`, outside what the hits up to its cut-off allow."""
    usable = {depth: found for depth, found in hits.items() if depth <= cutoff}
    if not usable or check_monotone(name, usable) is not None:
        return None
    bounds = bound_mrr(n, usable)
    is_cut = cutoff in usable
    if bounds.is_possible(mrr, decimals=decimals, is_cut=is_cut):
        return None
    high = bounds.high if is_cut else bounds.high_uncut
    return (
        f"{name}: mrr@{cutoff} {mrr:.4g} lies outside {bounds.low:.4g} to {high:.4g}, which its "
        "hits allow; one of them has another cut-off"
    )


def check_jump(name: str, value: float, earlier: Sequence[float]) -> str | None:
    """Question a change larger than any the arm has made before."""
    if len(earlier) < FEWEST_EARLIER:
        return None
    largest = max(abs(after - before) for before, after in pairwise(earlier))
    jump = value - earlier[-1]
    if abs(jump) <= largest + 1e-12:
        return None
    return (
        f"{name} moved by {jump:+.4g} to {value:.4g}; the largest of its {len(earlier) - 1} "
        f"earlier changes was {largest:.4g}"
    )
