"""Histories whose product is installed: the score follows the commit, whoever else measures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coldrun.tasks.history.history_model import History
from tests.history.small import SmallHistory

INSTALL = """
echo run >> {count}
python3 -m venv --without-pip .venv
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"""
COPIED = INSTALL + 'mkdir "$site/small"; cp small/*.py "$site/small"\n'

ADAPTER = """
import json, sys
import small
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps({"type": "ready", "nonce": message["nonce"]}), flush=True)
    elif message["type"] == "question":
        number = message["query"].split()[-1]
        paths = [f"item-{number}"] if int(number) in small.solved() else []
        print(json.dumps({"type": "answer", "id": message["id"], "paths": paths}), flush=True)
    else:
        break
"""


def build(small: SmallHistory, *, commits: int) -> Path:
    """A package that solves one task more at every commit; gives the file that counts set-ups."""
    count = small.root / "count"
    count.touch()
    (small.config.parent / "installed.py").write_text(ADAPTER)
    text = small.config.read_text()
    text = text.replace(
        'setup = ["sh", "setup.sh"]',
        f'setup = ["sh", "-c", {json.dumps(COPIED.format(count=count))}]',
    )
    text = text.replace(
        'argv = ["{python}", "{adapter}", "tool"]\nadapter = "adapter.py"',
        'argv = [".venv/bin/python", "-P", "{adapter}"]\nadapter = "installed.py"',
    )
    small.config.write_text(text)
    for number in range(commits):
        files = {"small/__init__.py": f"def solved():\n    return range({number + 4})\n"}
        small.commits.append(small.product.commit(f"solve {number + 4}", files))
    small.freeze()
    return count


def scores(history: History) -> list[float]:
    """How many tasks each point solved."""
    return [point.measures["exact"].count or 0 for point in history.points]


@pytest.mark.soak
def test_backfill_of_a_copied_product_measures_every_commit(small: SmallHistory) -> None:
    """Each commit is installed from its own files, and once."""
    count = build(small, commits=4)
    history = small.conduct(small.request("backfill"))
    assert scores(history) == [4, 5, 6, 7]
    assert count.read_text().count("run") == 4


BACKFILL = """
import dataclasses, sys
from pathlib import Path
from tests.history.small import SmallHistory
from tests.history.test_set_ups import scores
from coldrun.tasks.history.commits import list_range, open_product
from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.history_requests import HistoryRequest
from coldrun.tasks.run.prepare import load_evaluation

root, warehouse = map(Path, sys.argv[1:])
evaluation = load_evaluation(root / "evaluation" / "small.toml", scratch=root / "scratch")
commits = list_range(open_product(evaluation), sys.stdin.readline().strip(), "main")
history = conduct_history(HistoryRequest(
    kind="backfill", evaluation=evaluation, warehouse=warehouse, commits=commits, arm="tool",
    mode="cold",
))
print(scores(history), [point.status for point in history.points], history.warnings)
"""


@pytest.mark.soak
def test_two_histories_at_once_do_not_disturb_each_other(
    small: SmallHistory, tmp_path: Path
) -> None:
    """Two programs measure the same commits through the same scratch folder."""
    build(small, commits=5)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", BACKFILL, str(small.root), str(tmp_path / name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for process in both:
        assert process.stdin is not None
        process.stdin.write(small.commits[0] + "\n")
        process.stdin.flush()
    for process in both:
        output, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, complaint
        assert output.startswith(f"[4, 5, 6, 7, 8] {['measured'] * 5}")
