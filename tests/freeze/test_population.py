"""What the lock keeps of the tasks that a sample was drawn from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.freeze.freeze_panel import freeze_panel
from coldrun.tasks.freeze.population import (
    ProductionEstimate,
    describe_population,
    estimate_production,
)
from coldrun.tasks.lib.records import AnswerKind, GoldItem, Task
from tests.evaluations import CONFIG, EvaluationLab

golds = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True)


def make_tasks(golds: list[list[str]], answer: AnswerKind) -> list[Task]:
    return [
        Task(
            id=f"t{number}",
            query="q",
            answer=answer,
            gold=tuple(GoldItem(item=item) for item in gold),
        )
        for number, gold in enumerate(golds)
    ]


def weigh(tasks: list[Task], asked: list[int], scores: list[float]) -> ProductionEstimate:
    """The estimate from some of the tasks, with the population as the lock's JSON keeps it."""
    sample = [tasks[number] for number in asked]
    kept = json.loads(json.dumps(describe_population(tasks, sample)))
    return estimate_production(
        {task.id: score for task, score in zip(sample, scores, strict=True)}, sample, kept
    )


def test_estimate_published_vector_matches() -> None:
    """Shares 0.6, 0.3, 0.1 over ten sampled tasks give 0.5833 with a standard error of 0.1833."""
    tasks = make_tasks([["a"]] * 60 + [["b"]] * 30 + [["c"]] * 10, "set")
    asked = [*range(4), *range(60, 63), *range(90, 93)]
    found = weigh(tasks, asked, [1, 1, 0, 1, 0, 1, 0, 0, 0, 1])
    assert found.estimate == pytest.approx(0.5833333333333333, abs=1e-9)
    assert found.standard_error == pytest.approx(0.18333333333333335, abs=1e-9)
    assert found.coverage == 1.0
    assert found.lowest == found.highest == found.estimate


def test_estimate_shape_that_was_not_reached_bounds_it() -> None:
    """A shape of 20 % of the tasks, none of which was asked, may score 0 or 1."""
    tasks = make_tasks([["a"]] * 6 + [["b"]] * 2 + [["c", "a"]] * 2, "set")
    found = weigh(tasks, [0, 1, 6, 7], [1, 1, 0, 0])
    assert (found.coverage, found.estimate) == (pytest.approx(0.8), pytest.approx(0.75))
    assert (found.lowest, found.highest) == (pytest.approx(0.6), pytest.approx(0.8))


def test_estimate_single_task_stratum_has_no_standard_error() -> None:
    """One task shows no spread: undefined, not zero."""
    found = weigh(make_tasks([["a"], ["b"], ["b"]], "set"), [0, 1], [1.0, 0.5])
    assert found.standard_error is None
    assert found.estimate == pytest.approx((1 + 2 * 0.5) / 3)


def test_estimate_rankings_are_grouped_by_their_hub() -> None:
    """Unique shapes around one file are one stratum."""
    tasks = make_tasks([["core", "x"], ["core", "y"], ["z"]], "ranking")
    found = weigh(tasks, [0, 2], [1.0, 0.0])
    assert (found.coverage, found.estimate) == (1.0, pytest.approx(2 / 3))


@given(st.lists(golds, min_size=1, max_size=20), st.sampled_from(["ranking", "set"]), st.data())
def test_estimate_of_all_tasks_is_the_plain_mean(
    golds: list[list[str]], answer: AnswerKind, data: st.DataObject
) -> None:
    """Asking every task leaves nothing to weight."""
    scores = [data.draw(st.floats(0, 1)) for _ in golds]
    found = weigh(make_tasks(golds, answer), list(range(len(golds))), scores)
    assert found.estimate == pytest.approx(sum(scores) / len(scores))


def test_describe_population_knows_no_task_outside_dev(tmp_path: Path) -> None:
    """Without a corpus the items of the sealed part's gold are not counted either."""
    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG.replace("[sample]", "[split]\nsealed_fraction = 0.5\n\n[sample]"))
    rows = [
        {"id": f"t{n}", "query": f"item-{n}", "gold": [f"item-{n}"], "date": f"2026-01-{n + 1:02}"}
        for n in range(20)
    ]
    lab.write_rows(rows)
    result = lab.mine_and_freeze()
    assert result.lock["panel"]["corpus"]["items"] == 10
    assert result.lock["panel"]["population"]["tasks"] == 10
    assert not any(f"item-{n}" in json.dumps(result.lock) for n in range(10, 20))


def test_freeze_panel_lock_says_nothing_of_the_order_of_tasks(tmp_path: Path) -> None:
    """Mining again in another order gives the same lock, population included."""
    from dataclasses import replace

    from coldrun.tasks.config import load_config
    from coldrun.tasks.mine.mine_panel import mine_panel

    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG.replace('rule = "all"', 'rule = "answer-shape"\nsize = 5'))
    lab.write_tasks(12)
    config = load_config(lab.config)
    mined = mine_panel(config.panel, config_dir=lab.config.parent, scratch=lab.scratch)
    turned = replace(mined, tasks=tuple(reversed(mined.tasks)))
    assert freeze_panel(config, mined).lock == freeze_panel(config, turned).lock
