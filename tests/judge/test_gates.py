"""The gate: which outcome, and why."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.judge.gates import adjust_gates, judge_candidate, judge_gate, pair_scores
from coldrun.tasks.judge.report_model import GatePart
from coldrun.tasks.stats.paired import GATE_ALPHA, exact_paired_p


def hits(count: int, n: int = 40) -> np.ndarray:
    return (np.arange(n) < count).astype(np.float64)


def judge(scores: np.ndarray, *, margin: float = 1, **nulls: np.ndarray) -> GatePart:
    return judge_candidate(
        "tool", scores, measure="hit@5", nulls=nulls, rivals={}, margin_tasks=margin, seed=0
    )


@pytest.mark.parametrize(
    ("scored", "constant", "margin", "outcome", "reason"),
    [
        (16, 10, 1, "beats_nulls", "better than every null, p ≤ 0.016"),
        (15, 10, 1, "inconclusive", "better than constant by +5 tasks, but p = 0.031 > 0.025"),
        (10, 10, 1, "measured_nothing", "not better than constant (+0 tasks)"),
        (10, 12, 1, "measured_nothing", "not better than constant (-2 tasks)"),
        (16, 10, 7, "inconclusive", "less than the registered margin of 7"),
        (17, 10, 7, "beats_nulls", "better than every null"),
    ],
)
def test_judge_names_the_null_that_decides(
    scored: int, constant: int, margin: int, outcome: str, reason: str
) -> None:
    """Six more than the best null, none fewer, is the least that passes at 0.025."""
    found = judge(hits(scored), margin=margin, empty=hits(0), constant=hits(constant))
    assert found.outcome == outcome
    assert reason in found.reason


def test_judge_of_nothing_comparable_raises_and_rounding_is_no_difference() -> None:
    """A gate needs a null, and pairs the same tasks; 0.1 + 0.2 is not better than 0.3."""
    with pytest.raises(ValueError, match="at least one null"):
        judge_gate([], tasks=3, margin_tasks=1)
    with pytest.raises(ValueError, match="same tasks, at least one: got 3, and 4 of grep"):
        pair_scores(hits(1, 3), {"grep": ("floor", hits(1, 4))}, seed=0)
    found = judge(np.full(40, 0.1 + 0.2), constant=np.full(40, 0.3))
    assert (found.outcome, found.against[0].difference) == ("measured_nothing", 0.0)


def test_judge_against_an_expectation_uses_sign_flips_and_counts_nothing() -> None:
    """Fractions of a task have no ups and downs."""
    found = judge(hits(30), random=np.full(40, 0.1))
    assert found.outcome == "beats_nulls"
    assert (found.against[0].up, found.against[0].down) == (None, None)
    assert 0 < found.against[0].p <= GATE_ALPHA
    assert judge(hits(4), random=np.full(40, 0.1)).outcome == "measured_nothing"


def test_judge_names_every_control_that_scores_more() -> None:
    """A candidate may beat the nulls and lose to grep, and both are said with counts."""
    found = judge_candidate(
        "tool",
        hits(13),
        measure="hit@5",
        nulls={"constant": hits(2), "permuted:tool": hits(1), "permuted:other": hits(39)},
        rivals={"search": ("control", hits(13)), "grep": ("floor", hits(19))},
        margin_tasks=1,
        seed=0,
    )
    assert found.outcome == "beats_nulls"
    assert found.beaten_by == ["grep"]
    assert [part.arm for part in found.against] == ["constant", "permuted:tool"]
    grep = found.compared[1]
    assert (grep.role, grep.value, grep.difference) == ("floor", 19 / 40, -6 / 40)
    assert (grep.up, grep.down, grep.p) == (0, 6, 1.0)


@given(
    outcomes=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=80),
    margin=st.integers(0, 5),
)
def test_judge_of_binary_scores_follows_the_exact_test(
    outcomes: list[tuple[int, int]], margin: int
) -> None:
    """The whole verdict from two counts."""
    first, second = (np.array(column, float) for column in zip(*outcomes, strict=True))
    up, down = int((first > second).sum()), int((first < second).sum())
    expected = "beats_nulls"
    if up <= down:
        expected = "measured_nothing"
    elif up - down < margin or exact_paired_p(up, down) > 0.025:
        expected = "inconclusive"
    assert judge(first, margin=margin, constant=second).outcome == expected


def test_holm_is_over_all_comparisons_of_all_gates() -> None:
    """Of two candidates with two comparisons each, the smallest p counts four times."""
    gates = [judge(hits(count), empty=hits(0), constant=hits(10)) for count in (16, 18)]
    first, second = adjust_gates(gates)
    ps = [part.p for gate in gates for part in gate.against]
    assert second.against[0].holm_p == pytest.approx(4 * min(ps))
    assert first.against[1].holm_p == max(ps)
    assert first.outcome == gates[0].outcome
