"""The lock: a run starts on the frozen bytes and settings, or says what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.freeze.lock import changed_settings, lock_to_bytes, read_lock
from coldrun.tasks.lib.canonical import digest_bytes, digest_json
from coldrun.tasks.lib.errors import LockError
from tests.evaluations import CONFIG, EvaluationLab


@pytest.fixture
def lab(tmp_path: Path) -> EvaluationLab:
    return EvaluationLab(tmp_path).prepare()


def test_read_frozen_panel_of_other_bytes_names_both_hashes(lab: EvaluationLab) -> None:
    """One byte of the panel differs: nothing runs, whoever changed it and why."""
    frozen = lab.load().frozen.digest
    data = lab.files.panel.read_bytes().replace(b"item-3 ", b"item-4 ")
    lab.files.panel.write_bytes(data)

    with pytest.raises(LockError) as caught:
        lab.load()

    assert f"the lock says {frozen}, the file has {digest_bytes(data)}" in str(caught.value)
    assert caught.value.exit_code == 2


def test_read_frozen_panel_with_rewritten_line_ends_says_so(lab: EvaluationLab) -> None:
    """What `core.autocrlf` does to a checkout is no other panel, but it is other bytes."""
    lab.files.panel.write_bytes(lab.files.panel.read_bytes().replace(b"\n", b"\r\n"))

    with pytest.raises(LockError, match=r"only its line ends differ.*core\.autocrlf"):
        lab.load()


def test_read_frozen_panel_without_its_files_says_what_to_do(lab: EvaluationLab) -> None:
    """A lock of another version, a lost panel, a lost lock: each message is the next step."""
    text = lab.files.lock.read_text()
    lab.files.lock.write_text(text.replace('"schema": 1', '"schema": 2'))
    with pytest.raises(LockError, match="lock schema 2, this one reads 1"):
        read_lock(lab.files)
    lab.files.lock.write_text(text)
    lab.files.panel.unlink()
    with pytest.raises(LockError, match="cannot read the frozen panel"):
        lab.load()
    lab.files.lock.unlink()
    with pytest.raises(LockError, match=f"run `coldrun freeze {lab.config}` first"):
        lab.load()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"text"', "{}", '{"schema": 1}', '{"schema": 1, "panel": []}'],
)
def test_read_frozen_panel_with_a_damaged_lock_is_one_error(lab: EvaluationLab, text: str) -> None:
    """Cut off, emptied or edited by hand: never a traceback."""
    lab.files.lock.write_text(text)

    with pytest.raises(LockError, match="freeze anew"):
        lab.load()


SETTINGS = {
    "sample.rule": ('rule = "all"', 'rule = "random"'),
    "sample.seed": ('rule = "all"', 'rule = "all"\nseed = 1'),
    "measure.margin_tasks": ("[run]", "[measure]\nmargin_tasks = 0\n[run]"),
    "measure.also, measure.primary": ("[run]", '[measure]\nprimary = "f1"\n[run]'),
    "bar": ("[run]", '[[bar]]\narm = "reader"\nmeasure = "f1"\nat_least = 0.1\n[run]'),
    "split": ("[run]", "[split]\nsealed_fraction = 0.5\n[run]"),
    "holdout": ("[run]", "[holdout]\nopenings = 2\n[run]"),
    "panel.gold_from": ('answer = "set"', 'answer = "set"\ngold_from = "search"'),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_read_frozen_panel_with_changed_settings_names_them(lab: EvaluationLab, name: str) -> None:
    """Whatever was registered before the run cannot change after it unseen."""
    lab.write(CONFIG.replace(*SETTINGS[name], 1))

    with pytest.raises(LockError, match=f"no longer says what was frozen: {name} changed"):
        lab.load()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("concurrency = 2", "concurrency = 1"),
        ('name = "reader"', 'name = "another"'),
        ("[run]", '[[panel.used_for]]\nuse = "development"\nsince = 2026-08-01\n[run]'),
        ("[run]", "\r\n# another comment\r\n[run]"),
    ],
)
def test_read_frozen_panel_with_other_arms_or_notes_is_fine(
    lab: EvaluationLab, old: str, new: str
) -> None:
    """The lock covers the panel and how it is judged; arms and products may change."""
    before = lab.load().frozen
    lab.write(CONFIG.replace(old, new, 1))

    assert lab.load().frozen == before


def test_changed_settings_are_dotted_and_sorted() -> None:
    """Every difference has its name, nested ones too."""
    locked: dict[str, Any] = {"b": {"x": 1, "y": 2}, "a": [1], "same": None}
    current: dict[str, Any] = {"b": {"x": 2, "z": 3}, "a": [1, 2], "same": None}

    assert changed_settings(locked, current) == ("a", "b.x", "b.y", "b.z")
    assert changed_settings(locked, locked) == ()


def test_lock_bytes_are_sorted_readable_and_stable(lab: EvaluationLab) -> None:
    """A lock is reviewed in version control, so its bytes depend on its contents alone."""
    lock = read_lock(lab.files)
    data = lab.files.lock.read_bytes()

    assert data == lock_to_bytes(dict(reversed(lock.items())))
    assert data.endswith(b"}\n")
    assert b"\r" not in data
    assert json.loads(data) == {**lock, "digest": digest_json(lock)}
