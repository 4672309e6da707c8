"""`coldrun try` in terminals of several widths."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab
from tests.terminal.conftest import Show
from tests.terminal.emulator import assert_is_tidy


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Eight files, and a dozen commits that each change one or two of them."""
    builder = RepositoryBuilder(tmp_path / "shop")
    names = ["basket", "checkout", "invoice", "login", "search", "shipping", "stock", "voucher"]
    builder.commit("start", {f"shop/{name}.py": f"def {name}(): ...\n" for name in names})
    for number in range(12):
        first, second = names[number % 8], names[(number * 3 + 1) % 8]
        builder.commit(
            f"make the {first} page say why the {second} was refused ({number})",
            {f"shop/{name}.py": f"# {number}\ndef {name}(): ...\n" for name in (first, second)},
        )
    return builder.path


@pytest.mark.parametrize(
    "columns",
    [pytest.param(200, marks=pytest.mark.soak), 80, pytest.param(40, marks=pytest.mark.soak)],
)
def test_try_in_a_terminal_shows_its_phases_and_leaves_the_report_alone(
    tmp_path: Path, repository: Path, show: Show, columns: int
) -> None:
    """What is printed while the live line is there goes above it, and breaks between words."""
    lab = EvaluationLab(tmp_path)
    terminal = show(lab, "try", repository, "--tasks", "6", "--full", columns=columns).finish()

    assert_is_tidy(terminal, 3, "executed 36", "To repeat:")
    assert f"  coldrun run {next(lab.scratch.glob('try/*/shop.toml'))}" in terminal.lines
    assert f'  repo = "{repository}"' in terminal.lines
    assert {"mining", "starting", "judging"} <= terminal.phases
