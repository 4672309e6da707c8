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
