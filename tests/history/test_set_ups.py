"""Histories whose product is installed: the score follows the commit, whoever else measures."""

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
COPIED = INSTALL + 'mkdir "$site/small"; cp small/*.py "$site/small"\n'

ARM = """
import small

def answer(query):
    number = query.split()[-1]
    return {"paths": [f"item-{number}"] if int(number) in small.solved() else []}
"""


def install(small: SmallHistory) -> None:
    """A package that solves one task more at every commit."""
    small.write_arm(ARM, "installed.py")
    text = small.config.read_text()
    text = text.replace(
        'setup = ["sh", "setup.sh"]',
        f'setup = ["sh", "-c", {json.dumps(COPIED)}]',
    )
    text = text.replace(
        'argv = ["{python}", "{adapter}", "tool"]\nadapter = "arm.py"',
        'argv = [".venv/bin/python", "-P", "{adapter}"]\nadapter = "installed.py"',
    )
    small.write(text)
    for count in range(4, 9):
        module = f"def solved():\n    return range({count})\n"
        files = {"small/__init__.py": module}
        small.commits.append(small.product.commit(f"solve {count}", files))
    small.freeze()


def scores(history: History) -> list[float]:
    """How many tasks each point solved."""
    return [point.measures["exact"].count or 0 for point in history.points]


def backfill_into(small: SmallHistory, warehouse: Path) -> History:
    return conduct_history(replace(small.request("backfill"), warehouse=warehouse))


@pytest.mark.soak
def test_two_histories_at_once_do_not_disturb_each_other(
    small: SmallHistory, tmp_path: Path
) -> None:
    """Each commit is installed from its own files, by two programs and one scratch folder."""
    install(small)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        both = [pool.submit(backfill_into, small, tmp_path / name) for name in ("one", "two")]
        for future in both:
            history = future.result(timeout=120)
            assert scores(history) == [4, 5, 6, 7, 8]
            assert point_statuses(history) == ["measured"] * 5
