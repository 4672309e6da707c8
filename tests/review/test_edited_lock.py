"""A lock that somebody edited by hand."""

from __future__ import annotations

import json
from pathlib import Path

from tests.evaluations import EvaluationLab


def test_a_lock_without_its_digest_is_broken_and_not_unchecked(tmp_path: Path) -> None:
    """Whoever edits a lock would take the digest out as well."""
    lab = EvaluationLab(tmp_path).prepare()
    lock = json.loads(lab.files.lock.read_text())
    del lock["digest"]
    lab.files.lock.write_text(json.dumps(lock, indent=1))

    shown = lab.invoke("run", lab.config)

    assert shown.returncode == 5
    assert "was edited since it was written" in shown.stderr


def test_a_lock_whose_denominators_were_edited_is_refused(tmp_path: Path) -> None:
    """The nulls read the corpus's size from the lock: an edit there changes what must be beaten."""
    lab = EvaluationLab(tmp_path).prepare()
    lock = json.loads(lab.files.lock.read_text())
    lock["panel"]["corpus"]["items"] = 100_000
    lab.files.lock.write_text(json.dumps(lock, indent=1))

    shown = lab.invoke("run", lab.config)

    assert shown.returncode == 5
    assert "lock" in shown.stderr
