"""The ticket story from real history: thirty repositories whose commits name 117 tickets."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.config import parse_config
from coldrun.tasks.freeze.freeze_panel import FrozenResult, freeze_panel
from coldrun.tasks.lib.records import MinedPanel
from coldrun.tasks.mine.mine_panel import mine_panel
from tests.scenarios import ticket_shop


@pytest.fixture(scope="module")
def organisation(
    tmp_path_factory: pytest.TempPathFactory, build_repository: Callable[..., Any]
) -> Path:
    """Thirty repositories with a commit for each ticket that needs them, and the tickets' file."""
    folder = tmp_path_factory.mktemp("organisation")
    repositories = {
        name: build_repository(folder / "repos" / name, bare=True)
        for name in ticket_shop.REPOSITORIES
    }
    for repository in repositories.values():
        repository.commit("the beginning", {"README": "here"})
    tickets = ticket_shop.list_tickets()
    for ticket in tickets:
        for name in ticket["gold"]:
            message = f"{ticket['id']}: work on it\n\nReviewed-by: Ada <ada@example.org>"
            repositories[name].commit(message, {"work.txt": ticket["id"]})
    with (folder / "tickets.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "title"])
        writer.writerows((ticket["id"], ticket["query"]) for ticket in tickets)
    return folder


def freeze(organisation: Path, rule: str) -> tuple[MinedPanel, FrozenResult]:
    """Mine the organisation and freeze a sample of twenty."""
    config = parse_config(
        {
            "panel": {
                "kind": "ticket-repos",
                "repos": ["repos/*"],
                "ticket_pattern": r"SHOP-\d+",
                "tickets": "tickets.csv",
                "keep_unnamed_tickets": True,
            },
            "sample": {"rule": rule, "size": 20, "seed": ticket_shop.SEED},
        }
    )
    mined = mine_panel(config.panel, config_dir=organisation, scratch=organisation / "scratch")
    return mined, freeze_panel(config, mined)


def test_organisation_mines_every_ticket_with_its_repositories(organisation: Path) -> None:
    """Gold is what the commits touched, the empty answer of finished work included."""
    mined, frozen = freeze(organisation, "answer-shape")
    found = sorted(task.shape for task in mined.tasks)
    assert found == sorted(tuple(sorted(row["gold"])) for row in ticket_shop.list_tickets())
    assert (mined.candidates, sum(mined.drops.values()), len(mined.tasks)) == (117, 0, 117)
    assert len(mined.corpora) == 30
    assert (frozen.before.tasks, frozen.before.shapes) == (117, 8)
    assert frozen.before.top_share == pytest.approx(19 / 117)


@pytest.mark.parametrize(("rule", "constant"), [("largest-first", 0.95), ("answer-shape", 0.15)])
def test_organisation_constant_depends_on_how_the_sample_was_drawn(
    organisation: Path, rule: str, constant: float
) -> None:
    """The same tickets: one sample is answered by a constant, the other is not."""
    _, frozen = freeze(organisation, rule)
    nulls = {null.name: null.after["balanced"] for null in frozen.nulls}
    assert len(frozen.sampled) == 20
    assert nulls["constant"] == pytest.approx(constant)
    assert nulls["everything"] == 0.0
