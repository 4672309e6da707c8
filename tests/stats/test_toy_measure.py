"""A measure from outside the package: one definition is all that a measure needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from statistics import fmean

import pytest

from coldrun.tasks.lib.records import GoldItem, Task
from coldrun.tasks.stats.measures import MEASURES, parse_measure
from coldrun.tasks.stats.measures.definition import Definition, RandomDraw, cut_items
from coldrun.tasks.stats.nulls import NullGround, measure_nulls, permuted_scores
from tests.evaluations import CONFIG, EvaluationLab, arm_of


def score_first(items: Sequence[str], gold: Mapping[str, float], cutoff: int | None) -> float:
    cut = cut_items(items, cutoff)
    return 0.5 * any(item in gold for item in cut[:1]) + 0.5 * any(item in gold for item in cut)


def expect_first(draw: RandomDraw) -> float:
    if not draw.items or not draw.drawn:
        return 0.0
    first = len(draw.known) / draw.items
    missed = 1.0
    for place in range(draw.drawn):
        missed *= max(0, draw.items - len(draw.known) - place) / (draw.items - place)
    return 0.5 * first + 0.5 * (1.0 - missed)


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Definition(name="toy", score=score_first, expect_random=expect_first, cutoff="required")
    monkeypatch.setitem(MEASURES, "toy", toy)


def test_toy_measure_has_its_nulls_without_another_line() -> None:
    """Constant, random and permuted equal brute force, from a score and one formula."""
    golds = [["a"], ["a", "b"], ["b"], ["c"], ["a", "d"]]
    tasks = [
        Task(
            id=f"t{number}",
            query="",
            answer="ranking",
            gold=tuple(GoldItem(item=item) for item in gold),
        )
        for number, gold in enumerate(golds)
    ]
    toy = parse_measure("toy@2")
    ground = NullGround(corpus_items=5, change_counts={})
    nulls = measure_nulls(tasks, toy, primary=toy, k=2, ground=ground)
    answers = {
        task.id: list(order) for task, order in zip(tasks, permutations("abcd"), strict=False)
    }
    permuted = permuted_scores(answers, tasks, toy)

    orders = list(permutations("abcde"))
    best = max(
        fmean(toy.score(order, task.gold_grades) or 0.0 for task in tasks) for order in orders
    )
    assert nulls["constant"].mean() == pytest.approx(best)
    for task, chance, shuffled in zip(tasks, nulls["random"], permuted, strict=True):
        assert chance == pytest.approx(fmean(toy.score(o, task.gold_grades) or 0.0 for o in orders))
        others = [
            toy.score(answers[other.id], task.gold_grades) for other in tasks if other != task
        ]
        assert shuffled == pytest.approx(fmean(score or 0.0 for score in others))


def test_toy_measure_is_configured_scored_and_gated_like_any_other(tmp_path: Path) -> None:
    """As the primary measure of a run, with its interval and its gate."""
    config = CONFIG.replace('answer = "set"\n', "") + '\n[measure]\nprimary = "toy@2"\n'
    report = EvaluationLab(tmp_path).prepare(20, config=config).run().report

    assert report.primary == "toy@2"
    assert arm_of(report, "reader").measures["toy@2"].value == 1.0
    (gate,) = report.gates
    assert (gate.measure, gate.outcome) == ("toy@2", "beats_nulls")
    assert {part.arm for part in gate.against} >= {"empty", "constant", "random", "permuted"}
