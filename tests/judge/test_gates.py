"""The gate: which outcome, and why."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.stats.gate import (
    GATE_ALPHA,
    Judgement,
    judge_candidate,
    judge_gate,
    p_by_overlap,
    pair_scores,
    require_gating,
)
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.paired import exact_paired_p

HIT = parse_measure("hit@5")


def hits(count: int, n: int = 40) -> np.ndarray:
    """Score the first `count` of n tasks 1."""
    return (np.arange(n) < count).astype(np.float64)


def judge(scores: np.ndarray, *, margin: float = 1, **nulls: np.ndarray) -> Judgement:
    """Judge a candidate without rivals."""
    return judge_candidate(scores, measure=HIT, nulls=nulls, rivals={}, margin_tasks=margin, seed=0)


def test_judge_better_than_every_null_beats_them() -> None:
    """Six more than the best null, none fewer, is the least that passes."""
    found = judge(hits(16), empty=hits(0), constant=hits(10))
    assert found.outcome == "beats_nulls"
    assert found.p == exact_paired_p(6, 0)
    assert [pairing.up for pairing in found.against] == [16, 6]


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
    assert found.p == 1.0


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
        hits(13),
        measure=HIT,
        nulls={"constant": hits(2)},
        rivals={"search": hits(13), "grep": hits(19)},
        margin_tasks=1,
        seed=0,
    )
    assert found.outcome == "beats_nulls"
    assert found.beaten_by == ("grep",)
    grep = found.compared[1]
    assert (grep.total, grep.other_total, grep.tasks) == (13.0, 19.0, 40)
    assert (grep.up, grep.down, grep.p) == (0, 6, 1.0)


def test_judge_by_recall_is_refused() -> None:
    """Always-everything has recall 1, so no candidate could pass and no one should try."""
    for text in ("recall", "recall@5"):
        with pytest.raises(ConfigError, match="cannot be the primary measure"):
            require_gating(parse_measure(text))
    require_gating(HIT)
    with pytest.raises(ConfigError, match="always-everything"):
        judge_candidate(
            hits(3),
            measure=parse_measure("recall"),
            nulls={"empty": hits(0)},
            rivals={},
            margin_tasks=1,
            seed=0,
        )


def test_judge_without_a_null_raises() -> None:
    """A gate with nothing to beat is no gate."""
    with pytest.raises(ValueError, match="at least one null"):
        judge_gate([], tasks=3, margin_tasks=1)


def test_pair_scores_of_different_tasks_raises() -> None:
    """Pairing needs the same tasks."""
    with pytest.raises(ValueError, match="same tasks, at least one: got 3, and 4 of grep"):
        pair_scores(hits(1, 3), hits(1, 4), other="grep", is_expectation=False, seed=0)


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


def test_p_by_overlap_lists_every_table_that_two_totals_allow() -> None:
    """From as little overlap as fits to as much as there is."""
    assert list(p_by_overlap(20, hits=12, other_hits=3)) == [(12, 3), (11, 2), (10, 1), (9, 0)]
    assert list(p_by_overlap(20, hits=16, other_hits=19)) == [(1, 4), (0, 3)]
