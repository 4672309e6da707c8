"""One exit code for all that holds at once."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.judge.evidence import (
    Evidence,
    EvidenceFacts,
    Outcome,
    exit_code,
    judge_evidence,
    judge_verdict,
)

BY_WORD = {"measured_nothing": 3, "inconclusive": 6}
"""Codes of outcomes; the order of severity is 5, 4, 3, 6, 1, 0 (2 ends a program before)."""

outcomes = st.lists(
    st.sampled_from(["beats_nulls", "inconclusive", "measured_nothing"]), min_size=1, max_size=4
)


@given(st.sampled_from(get_args(Evidence)), outcomes, st.booleans())
def test_exit_code_is_the_worst_of_all_that_holds(
    evidence: Evidence, found: list[Outcome], are_bars_met: bool
) -> None:
    """Against the obvious version: collect all codes, take the first in the order of design."""
    codes = {"invalid": {5}, "incomplete": {4}, "replayed": {4}}.get(evidence, set())
    codes = codes | {BY_WORD[outcome] for outcome in found if outcome in BY_WORD}
    codes = codes | (set() if are_bars_met else {1}) | {0}
    expected = min(codes, key=[5, 4, 3, 6, 1, 0].index)

    verdict = judge_verdict(evidence, found)

    assert exit_code(verdict, outcomes=found, are_bars_met=are_bars_met) == expected


@pytest.mark.parametrize(
    ("evidence", "found", "are_bars_met", "verdict", "code"),
    [
        ("executed", ["beats_nulls"], True, "measured", 0),
        ("mixed", ["beats_nulls"], True, "measured", 0),
        ("executed", ["beats_nulls"], False, "measured", 1),
        ("executed", ["inconclusive"], False, "inconclusive", 6),
        ("executed", ["beats_nulls", "inconclusive"], True, "inconclusive", 6),
        ("executed", ["inconclusive", "measured_nothing"], True, "measured_nothing", 3),
        ("replayed", ["measured_nothing"], False, "replayed", 4),
        ("incomplete", ["beats_nulls"], True, "did_not_run", 4),
        ("invalid", ["beats_nulls"], True, "invalid", 5),
        ("invalid", ["measured_nothing"], False, "invalid", 5),
    ],
)
def test_verdict_and_exit_code_of_known_cases(
    evidence: Evidence, found: list[Outcome], are_bars_met: bool, verdict: str, code: int
) -> None:
    """The table that scripts rely on."""
    judged = judge_verdict(evidence, found)

    assert judged == verdict
    assert exit_code(judged, outcomes=found, are_bars_met=are_bars_met) == code


@given(
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 20),
    st.booleans(),
)
def test_evidence_is_executed_only_when_everything_planned_was_executed(
    planned: int, executed: int, replayed: int, infra: int, is_fast: bool
) -> None:
    """No other way leads to the one word that lets a score stand without a note."""
    facts = EvidenceFacts(
        planned=planned,
        executed=executed,
        replayed=replayed,
        infra=min(infra, executed),
        max_infra_share=0.05,
        mean_answer_seconds=0.1 if executed else None,
        minimum_seconds_per_answer=0.2 if is_fast else 0.0,
    )
    evidence, reasons = judge_evidence(facts)

    is_whole = 0 < planned <= executed and replayed == 0 and not is_fast
    assert (evidence == "executed") == (is_whole and facts.infra <= 0.05 * planned)
    assert (evidence == "executed") == (reasons == ())
