"""Histories whose points share a set-up: the score follows the commit, whoever else measures."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.history_model import History
from tests.history.small import SmallHistory, point_statuses, statuses

INSTALL = """
echo run >> {count}
python3 -m venv --without-pip .venv
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"""
EDITABLE = INSTALL + 'echo "$PWD" > "$site/small.pth"\n'
COPIED = INSTALL + 'mkdir "$site/small"; cp small/*.py "$site/small"\n'

ARM = """
import small

def answer(query):
    number = query.split()[-1]
    return {"paths": [f"item-{number}"] if int(number) in small.solved() else []}
"""


def build(small: SmallHistory, setup: str, *, commits: int, new_lock: int) -> Path:
    """A package that solves one task more at every commit; gives the file that counts set-ups."""
    count = small.root / "count"
    count.touch()
    small.write_arm(ARM, "installed.py")
    text = small.config.read_text()
    text = text.replace(
        'setup = ["sh", "setup.sh"]',
        f'setup = ["sh", "-c", {json.dumps(setup.format(count=count))}]\nsetup_key = ["uv.lock"]',
    )
    text = text.replace(
        'argv = ["{python}", "{adapter}", "tool"]\nadapter = "arm.py"',
        'argv = [".venv/bin/python", "-P", "{adapter}"]\nadapter = "installed.py"',
    )
    small.write(text)
    for number in range(commits):
        files = {
            "small/__init__.py": f"def solved():\n    return range({number + 4})\n",
            "uv.lock": "old" if number < new_lock else "new",
        }
        small.commits.append(small.product.commit(f"solve {number + 4}", files))
    small.freeze()
    return count


def scores(history: History) -> list[float]:
    """How many tasks each point solved."""
    return [point.measures["exact"].count or 0 for point in history.points]


@pytest.mark.soak  # eight virtual environments
def test_backfill_over_one_set_up_measures_every_commit(small: SmallHistory) -> None:
    """The product is another at each commit, the lock file at one: two set-ups, and the score of
    every point is its own."""
    count = build(small, EDITABLE, commits=8, new_lock=5)
    history = small.conduct("backfill")
    assert scores(history) == [4, 5, 6, 7, 8, 9, 10, 11]
    assert count.read_text().count("run") == 2
    assert statuses(history).count("changed") == 0  # one task is below the noise floor
    assert not any("set up for itself" in warning for warning in history.warnings)
    assert scores(small.conduct("backfill", mode="reuse")) == scores(history)
    assert count.read_text().count("run") == 2


@pytest.mark.soak
def test_backfill_of_a_copied_product_measures_every_commit(small: SmallHistory) -> None:
    """Without editable mode nothing is shared, the history says so, and the scores are right."""
    count = build(small, COPIED, commits=4, new_lock=9)
    history = small.conduct("backfill")
    assert scores(history) == [4, 5, 6, 7]
    assert count.read_text().count("run") == 4
    (warning,) = [line for line in history.warnings if "set up for itself" in line]
    assert "copied small/__init__.py to .venv/lib/" in warning
    assert "leave out setup_key" in warning


def backfill_into(small: SmallHistory, warehouse: Path) -> History:
    return conduct_history(replace(small.request("backfill"), warehouse=warehouse))


@pytest.mark.soak
def test_two_histories_at_once_do_not_disturb_each_other(
    small: SmallHistory, tmp_path: Path
) -> None:
    """Two programs measure the same commits through the same scratch folder."""
    build(small, EDITABLE, commits=5, new_lock=9)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        both = [pool.submit(backfill_into, small, tmp_path / name) for name in ("one", "two")]
        for future in both:
            history = future.result(timeout=120)
            assert scores(history) == [4, 5, 6, 7, 8]
            assert point_statuses(history) == ["measured"] * 5
