"""What a careful reader would doubt in a run: the checks of `tasks.judge.alerts`, gathered. Pure.

Each doubt is a warning with figures and changes no verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from coldrun.tasks.judge.alerts import Alert, check_jump, check_monotone, check_mrr
from coldrun.tasks.judge.gate_model import MeasurePart
from coldrun.tasks.judge.report_model import ArmPart
from coldrun.tasks.judge.score_table import ArmAnswers
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.run_record import EarlierRuns
from coldrun.tasks.stats.measures import parse_measure

FASTER_THAN_HISTORY = 0.2
"""A median answer time below this share of the arm's own history is questioned."""

FEWEST_ANSWERS = 5
"""Fewer answers than this say nothing about repeated times or answers."""


def doubt_arm(
    arm: ArmPart,
    answers: ArmAnswers,
    captures: Sequence[Capture],
    earlier: EarlierRuns,
    *,
    primary: str,
) -> Iterator[str]:
    """Every doubt about one executed arm."""
    executed = [capture for capture in captures if capture.evidence == "executed"]
    answered = [capture for capture in executed if not capture.is_infra]
    yield from _doubt_times(arm.name, answered, earlier)
    yield from _doubt_constant(answers)
    alerts = [
        check_monotone(arm.name, _hits(arm.measures)),
        *_doubt_mrr(arm),
        check_jump(f"{arm.name} {primary}", arm.measures[primary].value, earlier.scores),
    ]
    yield from (alert.text for alert in alerts if alert is not None)


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


def _hits(measures: Mapping[str, MeasurePart]) -> dict[int, float]:
    found = {}
    for text, part in measures.items():
        measure = parse_measure(text)
        if measure.name == "hit" and measure.cutoff is not None and part.count is not None:
            found[measure.cutoff] = float(part.count)
    return found


def _doubt_mrr(arm: ArmPart) -> Iterator[Alert | None]:
    hits = {cutoff: int(count) for cutoff, count in _hits(arm.measures).items()}
    for text, part in arm.measures.items():
        measure = parse_measure(text)
        if measure.name == "mrr" and measure.cutoff is not None and hits:
            yield check_mrr(arm.name, part.value, cutoff=measure.cutoff, n=arm.n, hits=hits)
