"""What the lock keeps of the tasks that a sample was drawn from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.freeze.freeze_panel import freeze_panel
from coldrun.tasks.freeze.population import describe_population, estimate_production
from coldrun.tasks.freeze.production import by_commonest_item, by_shape, post_stratified
from coldrun.tasks.freeze.sample import sample_tasks
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


@given(
    st.lists(golds, min_size=1, max_size=30),
    st.sampled_from(["ranking", "set"]),
    st.integers(1, 30),
    st.data(),
)
def test_estimate_from_the_lock_equals_the_one_from_all_tasks(
    golds: list[list[str]], answer: AnswerKind, size: int, data: st.DataObject
) -> None:
    """The sizes that went through the lock's JSON weight exactly as the tasks themselves do."""
    dev = make_tasks(golds, answer)
    sample = sample_tasks(dev, rule="random", size=size, seed=1)
    scores = {task.id: data.draw(st.sampled_from([0.0, 0.5, 1.0])) for task in sample}
    kept = json.loads(json.dumps(describe_population(dev, sample)))
    stratify = by_commonest_item(dev) if answer == "ranking" else by_shape
    expected = post_stratified(scores, sample, dev, stratify=stratify)
    found = estimate_production(scores, sample, kept)
    assert found.estimate == pytest.approx(expected.estimate)
    assert found.coverage == pytest.approx(expected.coverage)
    assert found.standard_error == pytest.approx(expected.standard_error)
    assert (found.lowest, found.highest) == pytest.approx((expected.lowest, expected.highest))
    assert found.strata == expected.strata


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
