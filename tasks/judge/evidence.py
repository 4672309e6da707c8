"""Evidence, verdict and exit code: how the answers came to be, and what a run may claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Evidence = Literal["executed", "mixed", "replayed", "incomplete", "invalid"]
Outcome = Literal["beats_nulls", "inconclusive", "measured_nothing", "refused"]
"""What answers show. `refused`: the arm helped to produce the gold, so they can show nothing."""
Verdict = Literal[
    "measured", "inconclusive", "measured_nothing", "replayed", "did_not_run", "invalid"
]

EXIT_CODES: dict[Verdict, int] = {
    "measured": 0,
    "invalid": 5,
    "replayed": 4,
    "did_not_run": 4,
    "measured_nothing": 3,
    "inconclusive": 6,
}
BAR_FAILED = 1
INTERRUPTED = 130

_WORST_FIRST = (2, 5, 4, 3, 6, 1, 0)
_OUTCOMES_WORST_FIRST: tuple[tuple[Outcome, Verdict], ...] = (
    ("measured_nothing", "measured_nothing"),
    ("inconclusive", "inconclusive"),
    ("beats_nulls", "measured"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFacts:
    """What is known of how the answers came to be.

    `mean_answer_seconds` is over the executed answers of the arms that the verdict is about, None
    when none was executed. `invalid` are reasons found while running (identity, corpus, drift).
    `infra_by_arm` has the failures and the planned answers of each arm, `replayed_arms` those arms
    that the verdict is about and of which nothing was executed.
    """

    planned: int
    executed: int
    replayed: int
    infra: int
    max_infra_share: float
    mean_answer_seconds: float | None
    minimum_seconds_per_answer: float
    invalid: Sequence[str] = ()
    infra_by_arm: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    replayed_arms: Sequence[str] = ()


def judge_evidence(facts: EvidenceFacts) -> tuple[Evidence, tuple[str, ...]]:
    """Say how the answers came to be, worst first, with the reasons for anything but `executed`."""
    invalid = list(facts.invalid)
    for arm, (infra, planned) in facts.infra_by_arm.items():
        if infra > facts.max_infra_share * planned:
            invalid.append(f"{arm}: {_too_many_failed(infra, planned, facts.max_infra_share)}")
    if facts.planned and facts.infra > facts.max_infra_share * facts.planned and not invalid:
        invalid.append(_too_many_failed(facts.infra, facts.planned, facts.max_infra_share))
    if invalid:
        return "invalid", tuple(invalid)
    missing = _why_incomplete(facts)
    if missing:
        return "incomplete", (missing,)
    if facts.executed == 0:
        return "replayed", ("no answer was executed in this run; all are replayed",)
    if facts.replayed:
        reasons = [f"{facts.replayed} of {facts.planned} answers are replayed"]
        reasons += [f"{arm}: answers of it are replayed" for arm in facts.replayed_arms]
        return "mixed", tuple(reasons)
    return "executed", ()


def _too_many_failed(infra: int, planned: int, share: float) -> str:
    return (
        f"{infra} of {planned} answers failed in the tool itself; at most {share:.0%} may "
        "(`max_infra_share`)"
    )


def _why_incomplete(facts: EvidenceFacts) -> str | None:
    if facts.planned == 0:
        return "no answer was planned"
    answered = facts.executed + facts.replayed
    if answered < facts.planned:
        return f"{answered} of {facts.planned} planned answers are there"
    mean, minimum = facts.mean_answer_seconds, facts.minimum_seconds_per_answer
    if mean is not None and mean < minimum:
        return (
            f"{mean:.6f} s per answer on average; below the registered minimum of {minimum:g} s "
            "nothing can have run"
        )
    return None


def judge_verdict(
    evidence: Evidence, outcomes: Sequence[Outcome], *, has_replayed_arm: bool = False
) -> Verdict:
    """Join evidence and the worst outcome over the candidates into one word.

    Refused candidates are left out; when all are refused, the run is invalid. When every answer of
    a candidate is replayed, so is the verdict, whatever else was executed.
    """
    if evidence == "mixed" and has_replayed_arm:
        return "replayed"
    match evidence:
        case "invalid":
            return "invalid"
        case "incomplete":
            return "did_not_run"
        case "replayed":
            return "replayed"
        case "executed" | "mixed":
            for outcome, verdict in _OUTCOMES_WORST_FIRST:
                if outcome in outcomes:
                    return verdict
            return "invalid" if "refused" in outcomes else "measured_nothing"


def exit_code(verdict: Verdict, *, outcomes: Sequence[Outcome], are_bars_met: bool) -> int:
    """The worst exit code over all that holds, in the order 2, 5, 4, 3, 6, 1."""
    codes = {EXIT_CODES[verdict]}
    if not are_bars_met:
        codes.add(BAR_FAILED)
    codes.update({3} if "measured_nothing" in outcomes else ())
    codes.update({6} if "inconclusive" in outcomes else ())
    return next(code for code in _WORST_FIRST if code in codes)
