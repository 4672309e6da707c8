"""Warnings of numbers that are too good or too stable to be true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.judge.doubts import check_jump, check_monotone, check_mrr
from coldrun.tasks.stats.intervals import bound_mrr


@given(
    ranks=st.lists(st.one_of(st.none(), st.integers(1, 12)), min_size=1, max_size=40),
    cutoffs=st.sets(st.integers(1, 10), min_size=1, max_size=4),
)
def test_bound_mrr_holds_for_every_ranking(ranks: list[int | None], cutoffs: set[int]) -> None:
    """No set of ranks leaves the bounds that its own hits give."""
    deepest = max(cutoffs)
    n = len(ranks)
    hits = {k: sum(rank is not None and rank <= k for rank in ranks) for k in cutoffs}
    bounds = bound_mrr(n, hits)
    cut = sum(1 / rank for rank in ranks if rank is not None and rank <= deepest) / n
    uncut = sum(1 / rank for rank in ranks if rank is not None) / n
    assert bounds.is_possible(cut, decimals=12)
    assert bounds.is_possible(uncut, decimals=12, is_cut=False)
    assert check_mrr("arm", cut, cutoff=deepest, n=n, hits=hits) is None
    assert check_monotone("arm", hits) is None


def test_bound_mrr_of_impossible_hits_raises() -> None:
    """Hits that fall with the cut-off are another warning's business."""
    for n, hits in ((10, {1: 3, 5: 2}), (10, {5: 11}), (10, {}), (0, {1: 0})):
        with pytest.raises(ValueError, match="hits"):
            bound_mrr(n, hits)


def test_check_mrr_outside_the_bounds_names_them() -> None:
    """A published MRR of 0.051 with 0, 2 and 6 hits is impossible at cut-off 8."""
    hits = {1: 0, 5: 2, 8: 6}
    alert = check_mrr("grep", 0.051, cutoff=8, n=71, hits=hits, decimals=3)
    assert alert is not None
    assert alert.startswith("grep: mrr@8 0.051 lies outside 0.01268 to 0.02347")
    assert check_mrr("grep", 0.051, cutoff=20, n=71, hits=hits, decimals=3) is None
    assert check_mrr("grep", 0.9, cutoff=3, n=71, hits={5: 2}) is None
    assert check_mrr("grep", 0.9, cutoff=8, n=71, hits={1: 5, 8: 2}) is None


def test_check_monotone_of_falling_hits_names_both_cutoffs() -> None:
    """More room cannot lose a hit."""
    alert = check_monotone("tool", {1: 3, 5: 9, 8: 8})
    assert alert is not None
    assert "hit@5 is 9 but hit@8 only 8" in alert
    assert check_monotone("tool", {}) is None


def test_check_jump_beyond_the_history_warns_and_needs_a_history() -> None:
    """Steps of one and two, then thirteen."""
    assert check_jump("tool", 32, [17, 18]) is None
    assert check_jump("tool", 21, [17, 18, 19]) is not None
    assert check_jump("tool", 20, [17, 18, 19]) is None
    alert = check_jump("tool", 32, [17, 19, 18, 19])
    assert alert is not None
    assert alert == ("tool moved by +13 to 32; the largest of its 3 earlier changes was 2")
