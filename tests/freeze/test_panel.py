"""The panel's bytes: the same for the same tasks, on every machine."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.freeze.lock import panel_from_bytes, panel_to_bytes
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import GoldItem, Task
from tests.evaluations import ROOT, EvaluationLab

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
golds = st.builds(
    GoldItem,
    item=texts,
    grade=st.floats(0.1, 9),
    provenance=st.sampled_from(["mined", "imported", "human"]),
)
tasks = st.builds(
    Task,
    id=texts,
    query=texts,
    answer=st.sampled_from(["ranking", "set"]),
    gold=st.lists(golds, max_size=3, unique_by=lambda gold: gold.item).map(
        lambda found: tuple(sorted(found, key=lambda gold: gold.item))
    ),
    date=st.none() | texts,
    base=st.none() | texts,
    strata=st.dictionaries(texts, texts, max_size=2),
)
panels = st.lists(tasks, max_size=8, unique_by=lambda task: task.id)


@given(panels, st.randoms())
def test_panel_bytes_do_not_depend_on_the_order_of_tasks(
    panel: list[Task], order: random.Random
) -> None:
    """Mining in another order gives the same hash, and the tasks come back sorted by id."""
    shuffled = list(panel)
    order.shuffle(shuffled)
    data = panel_to_bytes(panel)

    assert panel_to_bytes(shuffled) == data
    assert panel_from_bytes(data) == tuple(sorted(panel, key=lambda task: task.id))


@given(panels)
def test_panel_bytes_are_one_canonical_line_for_each_task(panel: list[Task]) -> None:
    """UTF-8, LF, sorted keys, no white space: the form that any program can reproduce."""
    data = panel_to_bytes(panel)
    lines = data.split(b"\n")[:-1]

    assert len(lines) == len(panel)
    for line in lines:
        value = json.loads(line)
        again = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        assert again.encode() == line
    assert b"\r" not in data


def test_panel_with_a_repeated_id_is_refused() -> None:
    """Two tasks of one id could not be told apart in any table."""
    task = Task(id="t1", query="?", answer="set", gold=())

    with pytest.raises(PanelError, match="two tasks have the id 't1'"):
        panel_to_bytes([task, task])


@pytest.mark.parametrize("data", [b"{", b"[]\n", b'{"id": "t1"}\n', b"\xff\n"])
def test_panel_from_other_bytes_is_one_error(data: bytes) -> None:
    """What is no panel is said to be none."""
    with pytest.raises(PanelError, match="the panel is not readable"):
        panel_from_bytes(data)


def test_freeze_gives_the_same_bytes_in_another_locale_time_zone_and_hash_seed(
    tmp_path: Path,
) -> None:
    """The files of a freeze depend on history and settings alone."""
    environment = {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"}
    lab = EvaluationLab(tmp_path).prepare()
    before = lab.files.panel.read_bytes()
    lab.files.panel.unlink()
    lab.files.lock.unlink()

    done = subprocess.run(
        [sys.executable, "-c", FREEZE, str(tmp_path)],
        env=os.environ | environment | {"PYTHONPATH": os.environ.get("PYTHONPATH") or str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert lab.files.panel.read_bytes() == before


FREEZE = """
import sys
from pathlib import Path
from tests.evaluations import EvaluationLab

EvaluationLab(Path(sys.argv[1])).freeze()
"""
