"""Histories whose points share a set-up: the score follows the commit, whoever else measures.

`tests/product/test_points_shared.py` counts the set-ups, and says what may be shared.
"""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.history_model import History
from tests.history.small import SmallHistory, point_statuses

INSTALL = """
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


def install(small: SmallHistory, setup: str, locks: str) -> None:
    """A package that solves one task more at every commit; a letter of `locks` for each."""
    small.write_arm(ARM, "installed.py")
    text = small.config.read_text()
    text = text.replace(
        'setup = ["sh", "setup.sh"]',
        f'setup = ["sh", "-c", {json.dumps(setup)}]\nsetup_key = ["uv.lock"]',
    )
    text = text.replace(
        'argv = ["{python}", "{adapter}", "tool"]\nadapter = "arm.py"',
        'argv = [".venv/bin/python", "-P", "{adapter}"]\nadapter = "installed.py"',
    )
    small.write(text)
    for count, lock in enumerate(locks, 4):
        module = f"def solved():\n    return range({count})\n"
        files = {"small/__init__.py": module, "uv.lock": lock}
        small.commits.append(small.product.commit(f"solve {count}", files))
    small.freeze()


def scores(history: History) -> list[float]:
    """How many tasks each point solved."""
    return [point.measures["exact"].count or 0 for point in history.points]


@pytest.mark.soak
def test_backfill_of_a_copied_product_measures_every_commit(small: SmallHistory) -> None:
    """Without editable mode nothing is shared, the history says so, and the scores are right."""
    install(small, COPIED, "aaaa")
    history = small.conduct("backfill")
    assert scores(history) == [4, 5, 6, 7]
    (warning,) = [line for line in history.warnings if "set up for itself" in line]
    assert "copied small/__init__.py to .venv/lib/" in warning
    assert "leave out setup_key" in warning


def backfill_into(small: SmallHistory, warehouse: Path) -> History:
    return conduct_history(replace(small.request("backfill"), warehouse=warehouse))


@pytest.mark.soak
def test_two_histories_at_once_do_not_disturb_each_other(
    small: SmallHistory, tmp_path: Path
) -> None:
    """Two programs measure the same commits, of two lock files, through one scratch folder."""
    install(small, EDITABLE, "aaabb")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        both = [pool.submit(backfill_into, small, tmp_path / name) for name in ("one", "two")]
        for future in both:
            history = future.result(timeout=120)
            assert scores(history) == [4, 5, 6, 7, 8]
            assert point_statuses(history) == ["measured"] * 5
