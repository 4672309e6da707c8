"""Measures against trec_eval, ir_measures and ranx where conventions agree, and where they part."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.stats.measures import parse_measure
from tests.stats.oracles import (
    mean_by_ranx,
    rank_scores,
    score_by_ir_measures,
    score_by_pytrec_eval,
)

pytestmark = pytest.mark.oracle

GRADES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.sampled_from([1.0, 2.0, 3.0]), min_size=1, max_size=5
)
RANKING = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


NAMES = {  # ours: trec_eval's, ir_measures', ranx's
    "hit": ("success.", "Success@", "hit_rate@"),
    "mrr": ("recip_rank", "RR@", "mrr@"),
    "precision": ("P.", "P@", "precision@"),
    "recall": ("recall.", "R@", "recall@"),
    "ndcg": ("ndcg_cut.", "nDCG@", "ndcg@"),
}


@settings(max_examples=60)
@given(gold=GRADES, items=RANKING, k=st.integers(1, 9))
def test_ranking_measures_equal_the_libraries(
    gold: dict[str, float], items: list[str], k: int
) -> None:
    """On distinct items and falling scores there is one right answer; ranx is slow and last."""
    qrels, run, cut = {"q": gold}, {"q": rank_scores(items)}, {"q": rank_scores(items[:k])}
    for name, (trec, ir, ranx) in NAMES.items():
        ours = pytest.approx(parse_measure(f"{name}@{k}").score(items, gold), abs=1e-6)
        oracle = trec if name == "mrr" else f"{trec}{k}"  # recip_rank takes no cut-off
        assert score_by_pytrec_eval(qrels, cut if name == "mrr" else run, oracle)["q"] == ours
        assert score_by_ir_measures(qrels, run, f"{ir}{k}")["q"] == ours
        assert mean_by_ranx(qrels, run, f"{ranx}{k}") == ours


def test_libraries_with_tied_scores_disagree_where_ours_reads_the_order() -> None:
    """trec_eval prefers the later name and ir_measures' RR@k the earlier one; we have no ties."""
    qrels, run = {"q": {"a": 1.0}}, {"q": {"a": 1.0, "b": 1.0}}
    assert score_by_pytrec_eval(qrels, run, "recip_rank")["q"] == 0.5
    assert score_by_ir_measures(qrels, run, "RR@10")["q"] == 1.0
    mrr = parse_measure("mrr@10")
    assert mrr.score(["a", "b"], {"a": 1.0}) == 1.0
    assert mrr.score(["b", "a"], {"a": 1.0}) == 0.5


def test_libraries_with_an_unanswered_task_disagree_where_ours_scores_zero() -> None:
    """trec_eval drops it and ir_measures scores 0, as we do: an answer missing is an answer."""
    qrels, run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}, {"q1": {"a": 1.0}}
    assert score_by_pytrec_eval(qrels, run, "recip_rank") == {"q1": 1.0}
    assert score_by_ir_measures(qrels, run, "RR@10") == {"q1": 1.0, "q2": 0.0}
    assert parse_measure("mrr@10").score([], {"a": 1.0}) == 0.0
    with pytest.raises(AssertionError):
        mean_by_ranx(qrels, run, "mrr")


def test_libraries_with_grade_zero_score_it_where_ours_has_no_gold() -> None:
    """An explicit grade of 0 is a judged miss to trec_eval; our gold holds right items only."""
    assert score_by_pytrec_eval({"q": {"a": 0.0}}, {"q": {"a": 1.0}}, "recip_rank") == {"q": 0.0}
    assert parse_measure("mrr@10").score(["a"], {}) is None
