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
    """Score the first `count` of n tasks 1."""
    return (np.arange(n) < count).astype(np.float64)


def judge(scores: np.ndarray, *, margin: float = 1, **nulls: np.ndarray) -> GatePart:
    """Judge a candidate without rivals."""
    return judge_candidate(
        "tool", scores, measure="hit@5", nulls=nulls, rivals={}, margin_tasks=margin, seed=0
    )


def test_judge_better_than_every_null_beats_them() -> None:
    """Six more than the best null, none fewer, is the least that passes."""
    found = judge(hits(16), empty=hits(0), constant=hits(10))
    assert found.outcome == "beats_nulls"
    assert [(part.up, part.p) for part in found.against] == [(16, 0.5**16), (6, 0.5**6)]
    assert (found.against[1].value, found.against[1].difference) == (0.25, 0.15)


def test_judge_five_more_than_a_null_is_inconclusive() -> None:
    """One task fewer has p = 0.031, above the level, and the null is named."""
    found = judge(hits(15), empty=hits(0), constant=hits(10))
    assert found.outcome == "inconclusive"
    assert found.reason == "better than constant by +5 tasks, but p = 0.031 > 0.025"


def test_judge_equal_to_a_null_measured_nothing() -> None:
    """A tie with any null is nothing, whatever the others say."""
    found = judge(hits(10), empty=hits(0), constant=hits(10))
    assert found.outcome == "measured_nothing"
    assert found.reason == "not better than constant (+0 tasks)"
    assert found.against[1].p == 1.0


def test_judge_worse_than_one_null_measured_nothing() -> None:
    """Better than four nulls does not make up for one."""
    assert judge(hits(10), empty=hits(0), constant=hits(12)).outcome == "measured_nothing"


def test_judge_below_the_margin_is_inconclusive() -> None:
    """Significant, but less than what was registered as better."""
    found = judge(hits(16), margin=7, constant=hits(10))
    assert found.outcome == "inconclusive"
    assert "less than the registered margin of 7" in found.reason
    assert judge(hits(17), margin=7, constant=hits(10)).outcome == "beats_nulls"


def test_judge_against_an_expectation_uses_sign_flips_and_counts_nothing() -> None:
    """Fractions of a task have no ups and downs."""
    found = judge(hits(30), random=np.full(40, 0.1))
    assert found.outcome == "beats_nulls"
    assert (found.against[0].up, found.against[0].down) == (None, None)
    assert 0 < found.against[0].p <= GATE_ALPHA
    assert judge(hits(4), random=np.full(40, 0.1)).outcome == "measured_nothing"


def test_judge_with_rounding_in_the_scores_is_no_difference() -> None:
    """0.1 + 0.2 is not better than 0.3."""
    found = judge(np.full(40, 0.1 + 0.2), constant=np.full(40, 0.3))
    assert found.outcome == "measured_nothing"
    assert found.against[0].difference == 0.0


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


def test_judge_without_a_null_raises() -> None:
    """A gate with nothing to beat is no gate."""
    with pytest.raises(ValueError, match="at least one null"):
        judge_gate([], tasks=3, margin_tasks=1)


def test_pair_scores_of_different_tasks_raises() -> None:
    """Pairing needs the same tasks."""
    with pytest.raises(ValueError, match="same tasks, at least one: got 3, and 4 of grep"):
        pair_scores(hits(1, 3), {"grep": ("floor", hits(1, 4))}, seed=0)


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
