"""Warnings of numbers that are too good or too stable to be true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.judge.alerts import (
    check_dev_sealed,
    check_free_score,
    check_jump,
    check_monotone,
    check_mrr,
    check_null_lead,
    check_pace,
    check_percentage,
    check_repeated_seconds,
    check_total,
)
from coldrun.tasks.stats.integrity import bound_mrr, find_min_runs, is_percentage_possible
from coldrun.tasks.stats.measures import parse_measure


@given(n=st.integers(1, 200), data=st.data(), decimals=st.integers(0, 2))
def test_percentage_of_a_real_count_is_always_possible(
    n: int, data: st.DataObject, decimals: int
) -> None:
    """GRIM never accuses a number that a count gave."""
    count = data.draw(st.integers(0, n))
    assert is_percentage_possible(round(100 * count / n, decimals), n, decimals=decimals)


def test_percentage_that_no_count_gives_is_impossible() -> None:
    """79 % of 20 tasks would be 15.8 tasks; four runs of 20 could average it."""
    assert not is_percentage_possible(79, 20)
    assert is_percentage_possible(78.9, 71, decimals=1)
    assert not is_percentage_possible(101, 20)
    assert find_min_runs(79, 20) == 4
    alert = check_percentage("agent exact", 79, 20)
    assert alert is not None
    assert "at least 4 runs" in alert.text
    assert check_percentage("null exact", 95, 20) is None
    with pytest.raises(ValueError, match="no rate"):
        find_min_runs(120, 20)


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
    assert alert.text.startswith("grep: mrr@8 0.051 lies outside 0.01268 to 0.02347")
    assert check_mrr("grep", 0.051, cutoff=20, n=71, hits=hits, decimals=3) is None
    assert check_mrr("grep", 0.9, cutoff=3, n=71, hits={5: 2}) is None
    assert check_mrr("grep", 0.9, cutoff=8, n=71, hits={1: 5, 8: 2}) is None


def test_check_monotone_of_falling_hits_names_both_cutoffs() -> None:
    """More room cannot lose a hit."""
    alert = check_monotone("tool", {1: 3, 5: 9, 8: 8})
    assert alert is not None
    assert "hit@5 is 9 but hit@8 only 8" in alert.text
    assert check_monotone("tool", {}) is None


def test_check_dev_sealed_warns_only_when_the_interval_clears_zero() -> None:
    """38 of 71 against 21 of 37 is no gap; 60 of 71 against 10 of 37 is one."""
    assert check_dev_sealed("tool", (38, 71), (21, 37)) is None
    alert = check_dev_sealed("tool", (60, 71), (10, 37))
    assert alert is not None
    assert "57.5 percentage points" in alert.text


def test_check_jump_beyond_the_history_warns_and_needs_a_history() -> None:
    """Steps of one and two, then thirteen."""
    assert check_jump("tool", 32, [17, 18]) is None
    assert check_jump("tool", 21, [17, 18, 19]) is not None
    assert check_jump("tool", 20, [17, 18, 19]) is None
    alert = check_jump("tool", 32, [17, 19, 18, 19])
    assert alert is not None
    assert alert.text == ("tool moved by +13 to 32; the largest of its 3 earlier changes was 2")


def test_check_pace_of_a_run_far_below_the_median_asks_whether_it_ran() -> None:
    """Twelve seconds, where runs take six minutes."""
    history = [360.0, 366.0, 366.0, 462.0, 810.0]
    alert = check_pace("run", 12.0, 71, history)
    assert alert is not None
    assert "3% of the median of 5 earlier runs" in alert.text
    assert check_pace("run", 300.0, 71, history) is None
    assert check_pace("run", 12.0, 71, []) is None


def test_check_repeated_seconds_of_a_replay_warns() -> None:
    """Real times never repeat to the last digit; a few equal ones may."""
    seconds = [0.1 + task / 7 for task in range(10)]
    assert check_repeated_seconds("run", seconds, seconds) is not None
    assert check_repeated_seconds("run", seconds, [0.0, *seconds[1:3], *[9.0] * 7]) is None
    assert check_repeated_seconds("run", [], []) is None


def test_check_free_score_of_model_calls_without_cost_warns() -> None:
    """Unreported cost is another matter."""
    assert check_free_score("chat", cost_usd=0.0, calls=71, score=0.5) is not None
    assert check_free_score("chat", cost_usd=None, calls=71, score=0.5) is None
    assert check_free_score("grep", cost_usd=0.0, calls=0, score=0.5) is None


def test_check_null_lead_of_a_null_that_reaches_the_score_warns() -> None:
    """Equal counts too."""
    alert = check_null_lead("agent", 0.79, {"empty": 0.0, "constant": 0.95})
    assert alert is not None
    assert alert.text == "agent scores 0.79, constant scores 0.95"
    assert check_null_lead("agent", 0.79, {"constant": 0.15}) is None
    assert check_null_lead("agent", 0.79, {}) is None


def test_check_total_of_parts_that_do_not_add_up_shows_the_sum() -> None:
    """Every count that leaves has a reason, and the reasons add up."""
    alert = check_total("solvable", 109, {"dev": 71, "sealed": 37})
    assert alert is not None
    assert alert.text == "solvable: dev 71 + sealed 37 = 108, not 109"


@given(items=st.lists(st.sampled_from("abcdef"), max_size=8, unique=True))
def test_checks_never_accuse_the_measures_themselves(items: list[str]) -> None:
    """What the measures give always passes."""
    gold = {"a": 1.0, "c": 1.0}
    hits = {k: int(parse_measure(f"hit@{k}").score(items, gold) or 0) for k in (1, 5, 8)}
    mrr = parse_measure("mrr@8").score(items, gold) or 0.0
    assert check_monotone("arm", hits) is None
    assert check_mrr("arm", mrr, cutoff=8, n=1, hits=hits) is None
