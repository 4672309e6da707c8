"""The sealed part on disk, and what freezing tells of it."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.lock import panel_from_bytes, read_lock
from coldrun.tasks.holdout import sealed_file
from coldrun.tasks.holdout.sealed_file import (
    SealedPart,
    find_key,
    key_path,
    read_sealed,
    seal,
    unseal,
)
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.errors import LockError, UsageError
from tests.evaluations import EvaluationLab
from tests.holdouts import WORDS, grow_garden, make_holdout_lab


def read_back(lab: EvaluationLab, lock: dict[str, Any] | None = None) -> SealedPart:
    config = load_config(lab.config)
    return read_sealed(lab.files, lock or read_lock(lab.files), config, scratch=lab.scratch)


def test_freeze_with_split_keeps_sealed_tasks_out_of_every_readable_file(
    lab: EvaluationLab,
) -> None:
    """The newer half is in no file beside the configuration, lock included."""
    lock = read_lock(lab.files)
    assert (lock["sealed"]["count"], lock["panel"]["tasks"]) == (12, 12)
    assert lock["sealed"]["rule"] == {"sealed_fraction": 0.5}
    assert lock["holdout"] == {"head": None, "count": 0, "demoted": None}
    written = b"".join(
        path.read_bytes() for path in lab.config.parent.iterdir() if path != lab.config
    )
    for word in WORDS[12:24]:
        assert f"Water the {word}".encode() not in written
    assert b"Water the anchor" in written


def test_freeze_with_split_tells_no_sealed_gold_in_its_figures(lab: EvaluationLab) -> None:
    """Distribution, nulls, population and warnings are of the dev part; totals are counts."""
    result = lab.mine_and_freeze()
    told = json.dumps(
        [str(result.before), str(result.after), str(result.nulls), result.warnings]
    ) + json.dumps(result.lock["panel"]["population"])
    for word in WORDS[12:24]:
        assert word not in told
    assert result.before.tasks == 12
    assert result.lock["panel"]["solvable"] == 24


def test_freeze_again_unchanged_writes_nothing(lab: EvaluationLab) -> None:
    """The nonce is new every time, so an unchanged sealed part must not be written again."""
    before = {path: path.read_bytes() for path in lab.config.parent.iterdir()}
    assert lab.freeze() == "unchanged"
    assert {path: path.read_bytes() for path in lab.config.parent.iterdir()} == before


def test_freeze_again_without_sealed_file_restores_it_under_the_same_key(
    lab: EvaluationLab,
) -> None:
    """A lost sealed file comes back; the lock stays as it was."""
    lock = lab.files.lock.read_bytes()
    key = key_path(read_lock(lab.files)["sealed"]["digest"]).read_bytes()
    lab.files.sealed.unlink()
    assert lab.freeze() == "restored"
    assert lab.files.lock.read_bytes() == lock
    assert key_path(read_lock(lab.files)["sealed"]["digest"]).read_bytes() == key
    assert read_back(lab).note is None


def test_key_file_is_private_and_outside_the_repository(lab: EvaluationLab) -> None:
    """Mode 0600, in the user's configuration folder, named by the hash of the sealed part."""
    path = key_path(read_lock(lab.files)["sealed"]["digest"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.is_relative_to(lab.config.parent)


def test_key_inside_the_repository_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration home inside the work tree would put the key beside what it opens."""
    lab = make_holdout_lab(tmp_path)
    (lab.config.parent / ".git").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(lab.config.parent / "home"))
    with pytest.raises(UsageError, match="inside the repository"):
        lab.freeze()
    assert not lab.files.lock.exists()
    assert not lab.files.panel.exists()


def test_read_sealed_with_key_decrypts_the_newer_half(lab: EvaluationLab) -> None:
    """The bytes are those that the lock has the hash of."""
    part = read_back(lab)
    assert part.note is None
    queries = {task.query for task in part.tasks}
    assert queries == {f"Water the {word} twice a day" for word in WORDS[12:24]}


def test_read_sealed_with_key_in_the_environment_writes_no_key_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COLDRUN_HOLDOUT_KEY stands in for the file."""
    monkeypatch.setenv("COLDRUN_HOLDOUT_KEY", base64.b64encode(bytes(range(32))).decode())
    lab = make_holdout_lab(tmp_path)
    lab.freeze()
    assert not (tmp_path / "config-home").exists()
    assert read_back(lab).note is None


def test_read_sealed_without_key_mines_the_same_tasks_again(lab: EvaluationLab) -> None:
    """Later commits on the branch do not matter: base and head are those of the lock."""
    digest = read_lock(lab.files)["sealed"]["digest"]
    key_path(digest).unlink()
    grow_garden(lab.root / "garden", 24, 25)
    part = read_back(lab)
    assert part.note is not None
    assert digest_bytes(part.data) == digest


@pytest.mark.parametrize("place", ["data", "nonce"])
def test_unseal_changed_file_is_refused_and_mined_again(lab: EvaluationLab, place: str) -> None:
    """The cipher is authenticated: one changed digit is noticed."""
    values = json.loads(lab.files.sealed.read_bytes())
    values[place] = ("0" if values[place][0] != "0" else "1") + values[place][1:]
    changed = json.dumps(values).encode()
    digest = read_lock(lab.files)["sealed"]["digest"]
    found = find_key(digest)
    assert found is not None
    with pytest.raises(LockError, match="does not fit"):
        unseal(changed, found.key, digest=digest)
    lab.files.sealed.write_bytes(changed)
    assert read_back(lab).note is not None


def test_unseal_file_of_another_panel_is_refused() -> None:
    """A sealed file that was swapped for another one names both hashes."""
    key = bytes(32)
    with pytest.raises(LockError, match="another panel"):
        unseal(seal(b"one\n", key), key, digest=digest_bytes(b"two\n"))


def test_read_sealed_by_another_miner_asks_for_the_key(
    lab: EvaluationLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another miner may find other tasks; it says so instead of a mere difference."""
    monkeypatch.setattr(sealed_file, "mine_panel", lambda *_, **__: pytest.fail("mined"))
    lock = read_lock(lab.files)
    key_path(lock["sealed"]["digest"]).unlink()
    lock["sealed"]["miner"] = "0"
    with pytest.raises(LockError, match="miner version 0 sealed it"):
        read_back(lab, lock)


def test_freeze_panel_too_small_warns_for_both_parts(tmp_path: Path) -> None:
    """Five tasks cannot separate two arms, on dev or sealed."""
    lab = make_holdout_lab(tmp_path, commits=10)
    warnings = lab.mine_and_freeze().warnings
    assert any(text.startswith("5 tasks cannot separate two arms") for text in warnings)
    assert any(text.startswith("sealed part: 5 tasks cannot") for text in warnings)


def test_freeze_without_split_removes_the_sealed_file(lab: EvaluationLab) -> None:
    """What is no longer sealed must not look as if it were."""
    text = lab.config.read_text().replace("[split]\nsealed_fraction = 0.5\n", "")
    lab.config.write_text(text)
    assert lab.freeze(force=True) == "replaced"
    assert not lab.files.sealed.exists()
    assert len(panel_from_bytes(lab.files.panel.read_bytes())) == 24
