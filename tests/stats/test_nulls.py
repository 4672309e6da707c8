"""Null strategies against brute force: every draw, every answer, every pairing."""

from __future__ import annotations

from itertools import combinations, permutations
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import AnswerKind, GoldItem, Task
from coldrun.tasks.stats.measures import Measure, parse_measure
from coldrun.tasks.stats.nulls import (
    NullGround,
    constant_answer,
    measure_nulls,
    permuted_scores,
    random_scores,
)

CORPUS = ("a", "b", "c", "d", "e")
RANKING_MEASURES = ("hit@2", "mrr@3", "ndcg@3", "precision@2", "recall@2", "precision", "f1")
SET_MEASURES = ("exact", "f1", "precision", "recall")


def make_task(number: int, gold: dict[str, float], answer: AnswerKind = "ranking") -> Task:
    items = tuple(GoldItem(item=item, grade=grade) for item, grade in gold.items())
    return Task(id=f"t{number}", query="", answer=answer, gold=items)


def make_golds(smallest: int) -> st.SearchStrategy[list[dict[str, float]]]:
    gold = st.dictionaries(
        st.sampled_from("abcde"), st.sampled_from([1.0, 2.0]), min_size=smallest, max_size=3
    )
    return st.lists(gold, min_size=2, max_size=6)


def mean_score(measure: Measure, answer: tuple[str, ...], tasks: list[Task]) -> float:
    return fmean(measure.score(answer, task.gold_grades) or 0.0 for task in tasks)


def score_nulls(
    tasks: list[Task],
    text: str,
    *,
    primary: str | None = None,
    k: int = 0,
    counts: dict[str, int] | None = None,
) -> dict[str, list[float]]:
    found = measure_nulls(
        tasks,
        parse_measure(text),
        primary=parse_measure(primary or text),
        k=k,
        ground=NullGround(corpus_items=5, change_counts=counts or {}),
    )
    return {name: scores.tolist() for name, scores in found.items()}


@settings(max_examples=60)
@given(text=st.sampled_from(RANKING_MEASURES), golds=make_golds(1), extra=st.booleans())
def test_random_ranking_equals_the_mean_over_all_orders(
    text: str, golds: list[dict[str, float]], extra: bool
) -> None:
    """The expectation is exact, also when gold lies outside the corpus."""
    corpus = CORPUS if not extra else CORPUS[1:]
    measure = parse_measure(text)
    tasks = [make_task(number, gold) for number, gold in enumerate(golds)]
    got = random_scores(tasks, measure, k=3, items=corpus)
    for task, value in zip(tasks, got, strict=True):
        orders = [order[:3] for order in permutations(corpus)]
        expected = fmean(measure.score(order, task.gold_grades) or 0.0 for order in orders)
        assert value == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60)
@given(text=st.sampled_from(SET_MEASURES), golds=make_golds(0), extra=st.booleans())
def test_random_set_equals_the_mean_over_gold_sizes_and_subsets(
    text: str, golds: list[dict[str, float]], extra: bool
) -> None:
    """The size comes from the panel's gold sizes, the set uniformly: both in expectation."""
    corpus = CORPUS if not extra else CORPUS[1:]
    measure = parse_measure(text)
    tasks = [make_task(number, gold, "set") for number, gold in enumerate(golds)]
    got = random_scores(tasks, measure, k=0, items=corpus)
    for task, value in zip(tasks, got, strict=True):
        expected = fmean(
            fmean(
                measure.score(answer, task.gold_grades) or 0.0
                for answer in combinations(corpus, len(other.gold))
            )
            for other in tasks
            if len(other.gold) <= len(corpus)
        )
        assert value == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60)
@given(text=st.sampled_from(SET_MEASURES), golds=make_golds(0))
def test_constant_set_is_the_best_of_all_sets(text: str, golds: list[dict[str, float]]) -> None:
    """No other set of items, tried one by one, scores higher."""
    measure = parse_measure(text)
    tasks = [make_task(number, gold, "set") for number, gold in enumerate(golds)]
    answer = constant_answer(tasks, measure, k=0)
    best = max(
        mean_score(measure, other, tasks)
        for size in range(len(CORPUS) + 1)
        for other in combinations(CORPUS, size)
    )
    assert mean_score(measure, answer, tasks) == pytest.approx(best, abs=1e-9)


@settings(max_examples=60)
@given(
    text=st.sampled_from(["ndcg@3", "precision@2", "recall@2", "precision", "recall", "f1"]),
    golds=make_golds(1),
)
def test_constant_ranking_is_the_best_of_all_rankings(
    text: str, golds: list[dict[str, float]]
) -> None:
    """For measures that add up over items, no other list scores higher."""
    measure = parse_measure(text)
    tasks = [make_task(number, gold) for number, gold in enumerate(golds)]
    answer = constant_answer(tasks, measure, k=3)
    assert len(answer) <= 3
    best = max(
        mean_score(measure, other, tasks)
        for size in range(4)
        for other in permutations(CORPUS, size)
    )
    assert mean_score(measure, answer, tasks) == pytest.approx(best, abs=1e-9)


@settings(max_examples=60)
@given(golds=make_golds(1), k=st.integers(1, 5))
def test_constant_for_hit_is_the_greedy_cover(golds: list[dict[str, float]], k: int) -> None:
    """Each item covers most tasks not covered yet; equals go to the commoner, then by text."""
    tasks = [make_task(number, gold) for number, gold in enumerate(golds)]
    frequency = {item: sum(item in gold for gold in golds) for item in CORPUS}
    chosen: list[str] = []
    left = list(golds)
    while len(chosen) < k and (
        candidates := [item for item in CORPUS if frequency[item] and item not in chosen]
    ):
        if not any(item in gold for item in candidates for gold in left):
            left = list(golds)
        best = min(
            candidates,
            key=lambda item: (-sum(item in gold for gold in left), -frequency[item], item),
        )
        chosen.append(best)
        left = [gold for gold in left if best not in gold]
    assert constant_answer(tasks, parse_measure("hit@2"), k=k) == tuple(chosen)


@settings(max_examples=150)
@given(
    case=st.sampled_from([(text, "ranking") for text in RANKING_MEASURES])
    | st.sampled_from([(text, "set") for text in SET_MEASURES]),
    golds=make_golds(0),
    answers=st.lists(st.lists(st.sampled_from("abcdexy"), max_size=6), min_size=6, max_size=6),
)
def test_permuted_scores_equal_the_mean_over_other_answers(
    case: tuple[str, AnswerKind], golds: list[dict[str, float]], answers: list[list[str]]
) -> None:
    """All pairings but a task with its own answer; the last task has none and counts as empty."""
    text, kind = case
    golds = golds if kind == "set" else [gold or {"a": 1.0} for gold in golds]
    measure = parse_measure(text)
    tasks = [make_task(number, gold, kind) for number, gold in enumerate(golds)]
    given_answers = {task.id: items for task, items in zip(tasks[:-1], answers, strict=False)}
    got = permuted_scores(given_answers, tasks, measure)
    for task, value in zip(tasks, got, strict=True):
        expected = fmean(
            measure.score(given_answers.get(other.id, []), task.gold_grades) or 0.0
            for other in tasks
            if other is not task
        )
        assert value == pytest.approx(expected, abs=1e-12)


def test_nulls_of_rankings_have_all_but_everything_in_order() -> None:
    """A ranking of everything is no strategy; equal counts of changes go by text."""
    tasks = [make_task(number, {"a": 1.0}) for number in range(3)]
    scores = score_nulls(tasks, "hit@1", k=2, counts={"c": 5, "b": 5, "a": 1})
    assert list(scores) == ["empty", "constant", "most-changed", "random"]
    assert scores["empty"] == [0.0, 0.0, 0.0]
    assert scores["constant"] == [1.0, 1.0, 1.0]
    assert scores["most-changed"] == [0.0, 0.0, 0.0]
    assert scores["random"] == pytest.approx([0.2, 0.2, 0.2])
    tasks = [make_task(0, {"b": 1.0})]
    assert score_nulls(tasks, "mrr@2", k=2, counts={"c": 5, "b": 5})["most-changed"] == [1.0]


def test_nulls_of_sets_have_everything_and_no_most_changed_without_counts() -> None:
    """Always-everything finds all gold and is exact on none; empty is right where gold is."""
    golds: list[dict[str, float]] = [{"a": 1.0}, {}, {"a": 1.0, "b": 1.0}]
    tasks = [make_task(number, gold, "set") for number, gold in enumerate(golds)]
    recall = score_nulls(tasks, "recall")
    assert list(recall) == ["empty", "everything", "constant", "random"]
    assert recall["empty"] == [0.0, 1.0, 0.0]
    assert recall["everything"] == [1.0, 0.0, 1.0]
    assert score_nulls(tasks, "precision")["everything"] == [0.2, 0.0, 0.4]


def test_constant_is_one_answer_at_the_primary_whatever_is_measured_of_it() -> None:
    """Its recall is not that of naming everything, and its reciprocal ranks are of one list."""
    sets = [{"a": 1.0}, {"a": 1.0}, {"b": 1.0, "c": 1.0}]
    tasks = [make_task(number, gold, "set") for number, gold in enumerate(sets)]
    assert score_nulls(tasks, "recall", primary="exact")["constant"] == [1.0, 1.0, 0.0]
    tasks = [make_task(0, {"a": 1.0}), make_task(1, {"b": 1.0}), make_task(2, {"b": 1.0})]
    assert constant_answer(tasks, parse_measure("hit@1"), k=2) == ("b", "a")
    scores = score_nulls(tasks, "mrr@2", primary="hit@1", k=2)
    assert scores["constant"] == [0.5, 1.0, 1.0]


def test_nulls_that_cannot_be_scored_are_refused() -> None:
    """No other answer to pair one task with; empty gold goes to set measures only."""
    with pytest.raises(ValueError, match="at least two tasks"):
        permuted_scores({}, [make_task(0, {"a": 1.0})], parse_measure("hit@1"))
    with pytest.raises(PanelError, match="task t1 has no gold"):
        score_nulls([make_task(0, {"a": 1.0}), make_task(1, {})], "hit@5", k=5)
