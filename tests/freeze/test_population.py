"""What the lock keeps of the tasks that a sample was drawn from."""

from __future__ import annotations

import json
from pathlib import Path

from coldrun.tasks.freeze.freeze_panel import freeze_panel
from tests.evaluations import CONFIG, EvaluationLab


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
