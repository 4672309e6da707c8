"""Null strategies against brute force: every draw, every answer, every pairing."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations, product
from math import prod
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.judge.gates import judge_candidate
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import AnswerKind, GoldItem, Task
from coldrun.tasks.stats import gold_table
from coldrun.tasks.stats.gold_table import build_gold_table
from coldrun.tasks.stats.measures import Measure, parse_measure
from coldrun.tasks.stats.nulls import (
    NullGround,
    constant_answer,
    constant_bound,
    measure_nulls,
    permutation_p,
    permuted_scores,
    random_p,
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
def test_constant_for_mrr_is_the_greedy_cover(golds: list[dict[str, float]], k: int) -> None:
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
    assert constant_answer(tasks, parse_measure("mrr@3"), k=k) == tuple(chosen)


@settings(max_examples=80)
@given(golds=make_golds(1), cutoff=st.integers(1, 3))
def test_constant_for_hit_covers_as_many_tasks_as_any_list(
    golds: list[dict[str, float]], cutoff: int
) -> None:
    """Against every list of the size, and what was proven is no more than that."""
    tasks = [make_task(number, gold) for number, gold in enumerate(golds)]
    measure = parse_measure(f"hit@{cutoff}")
    best = max(mean_score(measure, other, tasks) for other in combinations(CORPUS, cutoff))
    assert mean_score(measure, constant_answer(tasks, measure, k=5), tasks) == best
    assert constant_bound(tasks, measure) is None


def test_constant_for_hit_is_better_than_the_greedy_cover() -> None:
    """The commonest item is in no best pair: greedy covers 50 of 60, the pair of the others 60."""
    golds = [
        {"b" if number < 30 else "c": 1.0, **({"a": 1.0} if number % 30 < 20 else {})}
        for number in range(60)
    ]
    tasks = [make_task(number, gold) for number, gold in enumerate(golds)]
    assert build_gold_table(tasks).cover_greedily(2)[0] == 0
    assert set(constant_answer(tasks, parse_measure("hit@2"), k=2)) == {"b", "c"}


def test_constant_that_was_not_proven_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is cut off keeps the greedy cover, and tells how much better may exist."""
    rng = np.random.default_rng(5)
    names = [f"f{number:02}" for number in range(60)]
    golds = [dict.fromkeys(rng.choice(names, 3, replace=False), 1.0) for _ in range(200)]
    tasks = [make_task(number, gold) for number, gold in enumerate(golds)]
    monkeypatch.setattr(gold_table, "COVER_NODES", 0)
    measure = parse_measure("hit@6")
    bound = constant_bound(tasks, measure)
    found = mean_score(measure, constant_answer(tasks, measure, k=6), tasks)
    assert bound is not None
    assert found < bound <= 1.0


@settings(max_examples=60)
@given(chances=st.lists(st.floats(0, 1), min_size=1, max_size=7), data=st.data())
def test_random_p_is_the_share_of_all_outcomes(chances: list[float], data: st.DataObject) -> None:
    """Against the sum over every pattern of found and missed tasks."""
    found = data.draw(st.integers(0, len(chances)))
    total = sum(
        prod(chance if hit else 1 - chance for hit, chance in zip(hits, chances, strict=True))
        for hits in product((0, 1), repeat=len(chances))
        if sum(hits) >= found
    )
    scores = np.array([1.0] * found + [0.0] * (len(chances) - found))
    assert random_p(scores, np.array(chances)) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("text", ["hit@1", "mrr@3", "f1"])
def test_permutation_p_is_the_share_of_all_assignments(text: str) -> None:
    """Against every order of five answers, and for answers that ignore the question."""
    tasks = [make_task(number, {item: 1.0}) for number, item in enumerate("aabcd")]
    answers = {f"t{number}": [item] for number, item in enumerate("aabdc")}
    measure = parse_measure(text)
    totals = [
        sum(
            measure.score(answers[f"t{at}"], task.gold_grades) or 0.0
            for at, task in zip(order, tasks, strict=True)
        )
        for order in permutations(range(5))
    ]
    share = fmean(total >= 3.0 for total in totals)
    blind = {key: ["a"] for key in answers}
    p, one = permutation_p([[answers], [blind]], tasks, measure, seed=1)
    assert p == pytest.approx(share, abs=4 * (share / 9999) ** 0.5)
    assert one == 1.0


@pytest.mark.parametrize(("items", "text"), [(4, "hit@2"), (4, "f1"), (400, "hit@2"), (400, "f1")])
def test_permutation_p_adds_up_single_scores(items: int, text: str) -> None:
    """With few and with many pairs that score, empty gold and empty answers, over two trials."""
    rng, measure = np.random.default_rng(items), parse_measure(text)
    names = [f"f{number}" for number in range(items)]
    fewest = 0 if text == "f1" else 1
    tasks = [
        make_task(at, dict.fromkeys(rng.choice(names, rng.integers(fewest, 3), False), 1.0))
        for at in range(40)
    ]
    arms = [
        [
            {t.id: list(rng.choice(names, rng.integers(0, 3), replace=False)) for t in tasks}
            for _ in range(2)
        ]
        for _ in range(2)
    ]
    draws = np.random.default_rng(3)
    orders = [np.arange(40), *(draws.permutation(40) for _ in range(99))]
    for arm, p in zip(arms, permutation_p(arms, tasks, measure, seed=3, resamples=99), strict=True):
        totals = [
            sum(
                measure.score(trial[f"t{at}"], task.gold_grades) or 0.0
                for trial in arm
                for at, task in zip(order, tasks, strict=True)
            )
            for order in orders
        ]
        assert p == sum(total >= totals[0] - 1e-9 for total in totals) / 100


def blind_arms(rng: np.random.Generator, tasks: list[Task]) -> dict[str, dict[str, list[str]]]:
    """Arms that never read the question."""
    golds = [task.gold[0].item for task in tasks]
    names, counts = np.unique(golds, return_counts=True)
    popular = [str(name) for name in names[np.argsort(-counts)]]
    drawn = rng.choice(names, len(tasks), p=counts / counts.sum())
    return {
        "one answer": {task.id: [popular[0]] for task in tasks},
        "by popularity": {task.id: [str(drawn[at])] for at, task in enumerate(tasks)},
        "any file": {task.id: [f"f{rng.integers(60):02}"] for task in tasks},
        "answers of others": dict(
            zip(
                [task.id for task in tasks],
                [[gold] for gold in rng.permutation(golds)],
                strict=True,
            )
        ),
    }


@pytest.mark.parametrize(
    ("sizes", "rounds"),
    [((10, 40), 60), pytest.param((10, 20, 71, 200, 400), 1000, marks=pytest.mark.soak)],
)
@pytest.mark.timeout(1500)
def test_blind_arms_pass_each_gate_and_all_of_them_rarely(
    sizes: tuple[int, ...], rounds: int
) -> None:
    """At a nominal 2.5 %, blind arms pass `permuted`, `random` or all nulls no more often."""
    measure = parse_measure("hit@1")
    limit = 0.025 + 3 * (0.025 * 0.975 / rounds) ** 0.5
    for n in sizes:
        passed: Counter[tuple[str, str]] = Counter()
        for number in range(rounds):
            rng = np.random.default_rng([n, number])
            golds = (rng.pareto(0.8, n)).astype(int) % 30
            tasks = [make_task(at, {f"f{gold:02}": 1.0}) for at, gold in enumerate(golds)]
            ground = NullGround(corpus_items=60, change_counts={})
            nulls = measure_nulls(tasks, measure, primary=measure, k=1, ground=ground)
            for name, answers in blind_arms(rng, tasks).items():
                scores = np.array(
                    [measure.score(answers[task.id], task.gold_grades) or 0.0 for task in tasks]
                )
                found = {
                    "permuted": permutation_p(
                        [[answers]], tasks, measure, seed=number, resamples=199
                    )[0],
                    "random": random_p(scores, nulls["random"]),
                }
                gate = judge_candidate(
                    "arm",
                    scores,
                    measure="hit@1",
                    nulls=nulls | {"permuted": permuted_scores(answers, tasks, measure)},
                    rivals={},
                    margin_tasks=0,
                    exact_p=found,
                    seed=1,
                )
                passed[name, "permuted"] += found["permuted"] <= 0.025
                passed[name, "all"] += gate.outcome == "beats_nulls"
                if name == "any file":
                    passed[name, "random"] += found["random"] <= 0.025
        shares = {key: count / rounds for key, count in passed.items()}
        print(n, shares)
        assert all(share <= limit for share in shares.values()), (n, shares)


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
