"""`coldrun prune`: scratch space goes, measured data stays."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from coldrun.tasks.lib.machine.file_locks import take_lock
from tests.evaluations import EvaluationLab

OLD = time.time() - 40 * 86_400


@pytest.fixture
def lab(tmp_path: Path) -> EvaluationLab:
    """A scratch folder with one of each kind, all old, and a run in the warehouse."""
    made = EvaluationLab(tmp_path).prepare()
    made.run()
    for name in ("corpora/aa", "clones/bb.git", "points/cc", "try/dd", "sessions/run/ee"):
        folder = made.scratch / name
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"x" * 1000)
        os.utime(folder, (OLD, OLD))
    (made.scratch / "corpora" / "aa.complete").write_text("{}")
    (made.scratch / "tokens").mkdir(exist_ok=True)
    (made.scratch / "tokens" / "v0.sqlite3").write_bytes(b"y" * 500)
    os.utime(made.scratch / "tokens" / "v0.sqlite3", (OLD, OLD))
    (made.scratch / "prefect" / "own").mkdir(parents=True)
    return made


def test_prune_removes_what_is_old_and_shows_what_it_frees(lab: EvaluationLab) -> None:
    """Each kind with its size; the stamp of a corpus goes too, Prefect's folder stays."""
    done = lab.invoke("prune")
    assert done.returncode == 0, done.stderr
    assert "freed in" in done.stdout
    for kind in ("corpora", "clones", "points", "try", "tokens"):
        assert [path.suffix for path in (lab.scratch / kind).iterdir() if path.suffix] in (
            [],
            [".lock"],
        ), kind
    assert not (lab.scratch / "corpora" / "aa.complete").exists()
    assert (lab.scratch / "prefect" / "own").is_dir()


def test_prune_dry_run_removes_nothing(lab: EvaluationLab) -> None:
    """The same list, and all is still there."""
    values = json.loads(lab.invoke("prune", "--dry-run", "--json", "-").stdout)
    kinds = {entry["kind"] for entry in values["removed"]}
    assert kinds >= {"corpora", "clones", "points", "try", "tokens", "sessions"}
    assert values["freed_bytes"] >= 5500
    assert (lab.scratch / "corpora" / "aa" / "file").exists()


def test_prune_leaves_what_is_young_or_in_use(lab: EvaluationLab) -> None:
    """Age is the time since the last use; a session that is alive is never touched."""
    os.utime(lab.scratch / "clones" / "bb.git")
    lock = take_lock(lab.scratch / "sessions" / "run" / "ee.lock")
    used = take_lock(lab.scratch / "points" / "cc.use", is_shared=True)
    os.utime(lab.scratch / "points" / "cc.use", (OLD, OLD))
    try:
        lab.invoke("prune")
        assert (lab.scratch / "clones" / "bb.git" / "file").exists()
        assert (lab.scratch / "sessions" / "run" / "ee" / "file").exists()
        assert (lab.scratch / "points" / "cc" / "file").exists()
    finally:
        lock.release()
        used.release()
    lab.invoke("prune", "--older-than", "0")
    assert not (lab.scratch / "sessions" / "run" / "ee").exists()
    assert not (lab.scratch / "clones" / "bb.git").exists()


def test_prune_never_touches_the_warehouse(lab: EvaluationLab) -> None:
    """Byte for byte as it was."""
    before = {path: path.read_bytes() for path in lab.warehouse.rglob("*") if path.is_file()}
    lab.invoke("prune", "--older-than", "0")
    after = {path: path.read_bytes() for path in lab.warehouse.rglob("*") if path.is_file()}
    assert after == before


def test_prune_while_a_run_is_written_is_refused(lab: EvaluationLab) -> None:
    """A run needs its clone and its corpus until it is done."""
    started = lab.start()  # into the warehouse of this lab; the lock is of the scratch folder
    done = lab.invoke("prune", "--warehouse", lab.root / "another")
    started.abandon()
    assert done.returncode == 2
    assert "a run is being written and needs its clones" in done.stderr
    assert (lab.scratch / "corpora" / "aa" / "file").exists()


def test_prune_warehouse_inside_a_pruned_folder_is_refused(lab: EvaluationLab) -> None:
    """A warehouse in the wrong place is not a reason to lose it."""
    done = lab.invoke("prune", "--warehouse", lab.scratch / "try" / "data")
    assert done.returncode == 2
    assert "lies in the scratch folder's try" in done.stderr
