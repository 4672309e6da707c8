"""Measures against slow, obvious definitions, on every answer that Hypothesis can think of."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.stats.measures import parse_measure

ITEMS = st.lists(st.sampled_from("abcdefgh"), max_size=10)
GOLD = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([1.0, 2.0, 3.0]), max_size=5)
CUTOFF = st.integers(1, 6)


def keep_distinct(items: list[str]) -> list[str]:
    return [item for place, item in enumerate(items) if item not in items[:place]]


def score_slowly(name: str, items: list[str], gold: dict[str, float], k: int | None) -> float:
    ranked = keep_distinct(items)[: k if k is not None else len(items)]
    found = [item for item in ranked if item in gold]
    ranks = [place + 1 for place, item in enumerate(ranked) if item in gold]
    if name == "hit":
        return 1.0 if found else 0.0
    if name == "mrr":
        return 1.0 / min(ranks) if ranks else 0.0
    if name == "ndcg":
        best = sorted(gold.values())[::-1][:k]
        ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
        gained = sum(gold[item] / math.log2(ranked.index(item) + 2) for item in found)
        return gained / ideal
    if not ranked and not gold:
        return 1.0
    if not gold or (not ranked and k is None):
        return 0.0
    precision = len(found) / (k or len(ranked))
    recall = len(found) / len(gold)
    if name == "f1":
        return 2 * precision * recall / (precision + recall) if found else 0.0
    if name == "exact":
        return 1.0 if sorted(ranked) == sorted(gold) else 0.0
    return precision if name == "precision" else recall


@given(
    name=st.sampled_from(["hit", "mrr", "ndcg", "precision", "recall"]),
    items=ITEMS,
    gold=GOLD,
    k=CUTOFF,
)
def test_score_with_cutoff_equals_the_slow_definition(
    name: str, items: list[str], gold: dict[str, float], k: int
) -> None:
    """Each ranking measure is its definition, and undefined exactly when gold is empty."""
    value = parse_measure(f"{name}@{k}").score(items, gold)
    if not gold:
        assert value is None
    else:
        assert value == pytest.approx(score_slowly(name, items, gold, k), abs=1e-12)
        assert 0.0 <= value <= 1.0


@given(name=st.sampled_from(["precision", "recall", "f1", "exact"]), items=ITEMS, gold=GOLD)
def test_score_of_sets_equals_the_slow_definition(
    name: str, items: list[str], gold: dict[str, float]
) -> None:
    """Each set measure is its definition, empty sets included."""
    value = parse_measure(name).score(items, gold)
    assert value == pytest.approx(score_slowly(name, items, gold, None), abs=1e-12)


@pytest.mark.parametrize(
    ("text", "name", "cutoff", "is_binary", "kinds", "can_gate"),
    [
        ("hit@5", "hit", 5, True, {"ranking"}, True),
        ("mrr@8", "mrr", 8, False, {"ranking"}, True),
        ("ndcg@10", "ndcg", 10, False, {"ranking"}, True),
        ("precision", "precision", None, False, {"ranking", "set"}, True),
        ("precision@5", "precision", 5, False, {"ranking"}, True),
        ("recall", "recall", None, False, {"ranking", "set"}, False),
        ("recall@5", "recall", 5, False, {"ranking"}, False),
        ("f1", "f1", None, False, {"ranking", "set"}, True),
        ("exact", "exact", None, True, {"set"}, True),
    ],
)
def test_parse_measure_known_text_gives_its_properties(
    text: str, name: str, cutoff: int | None, is_binary: bool, kinds: set[str], can_gate: bool
) -> None:
    """Every measure knows its cut-off, whether it is binary, what it scores, and if it gates."""
    measure = parse_measure(text)
    assert (measure.text, measure.name, measure.cutoff) == (text, name, cutoff)
    assert measure.definition.is_binary is is_binary
    assert measure.answer_kinds == kinds
    assert measure.definition.can_gate is can_gate


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stability", "stability compares the trials"),
        ("stability@3", "stability compares the trials"),
        (
            "accuracy",
            "is not known; measures are hit@k, .*precision, precision@k",
        ),
        ("", "is not known"),
        ("hit", "needs a cut-off, as in hit@5"),
        ("mrr", "needs a cut-off, as in mrr@5"),
        ("ndcg", "needs a cut-off"),
        ("hit@0", "whole number from 1"),
        ("hit@-1", "whole number from 1"),
        ("hit@five", "whole number from 1"),
        ("hit@5 ", "whole number from 1"),
        ("exact@5", "exact takes no cut-off"),
        ("f1@5", "f1 takes no cut-off"),
    ],
)
def test_parse_measure_wrong_text_raises_and_says_what_to_write(text: str, message: str) -> None:
    """A measure that cannot be read names itself and what would do."""
    with pytest.raises(ConfigError, match=message):
        parse_measure(text)
