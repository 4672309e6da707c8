"""`coldrun holdout`, on a real Prefect server whose database is searched afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from coldrun.tasks.freeze.lock import read_lock
from coldrun.tasks.holdout.sealed_file import key_path
from tests.evaluations import EvaluationLab
from tests.holdouts import WORDS, make_holdout_lab

SEALED = WORDS[12:24]

REST = """\
[run]
max_infra_share = 0.2  # one answer is meant to fail

[[arm]]
name = "bm25"
kind = "bm25"

[[arm]]
name = "noisy"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "arm.py"
"""

NOISY = """\
def answer(query):
    print("asked", query, file=sys.stderr, flush=True)
    if "quartz" in query:
        say(type="error", id="none", message=query)
    return {"items": [{"path": "beds/" + query.split()[2] + ".py"}]}
"""


@pytest.fixture(autouse=True)
def _private_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config-home"))
    monkeypatch.delenv("COLDRUN_HOLDOUT_KEY", raising=False)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EvaluationLab]:
    """A lab with a server of its own, and so its database."""
    lab = make_holdout_lab(tmp_path, rest=REST)
    lab.write_arm(NOISY)
    monkeypatch.setenv("COLDRUN_STATE", str(tmp_path / "state"))
    started = lab.coldrun("server", "start")
    assert started.returncode == 0, started.stderr
    try:
        yield lab
    finally:
        lab.coldrun("server", "stop")


@pytest.mark.prefect
@pytest.mark.soak  # a server of its own, whose database is searched
def test_holdout_open_leaves_no_sealed_byte_in_warehouse_scratch_output_or_prefect(
    served: EvaluationLab,
) -> None:
    """The real commands, every byte that they left: aggregates and a ledger line, no question."""
    lab = served
    frozen = lab.invoke("freeze", lab.config)
    assert frozen.returncode == 0, frozen.stderr
    assert str(key_path(read_lock(lab.files)["sealed"]["digest"])) in frozen.stdout
    opened = lab.coldrun(
        "holdout", "open", lab.config, "--reason", "release", "--json", "-", "--verbose"
    )
    assert opened.returncode == 0, opened.stderr
    told = json.loads(opened.stdout)
    assert (told["opening"]["status"], told["which"]) == ("opened", "opening 1 of 1 declared")
    refused = lab.invoke("holdout", "open", lab.config, "--reason", "again")
    assert refused.returncode == 2
    page = lab.root / "openings.md"
    logged = lab.invoke("holdout", "log", lab.config, "--markdown", page)
    assert logged.returncode == 0, logged.stderr
    assert "## Line 1\n\n- sealed part sha256:" in page.read_text(encoding="utf-8")
    assert "| arm | role | hit@1, n = 12 |" in page.read_text(encoding="utf-8")
    stopped = lab.coldrun("server", "stop")
    assert stopped.returncode == 0
    databases = [path for path in lab.root.rglob("*.db*") if b"answer 20" in path.read_bytes()]
    assert databases, "the flow run is in no database, so the search below proves nothing"
    output = [done.stdout + done.stderr for done in (opened, frozen, refused, logged)]
    for word in SEALED:
        assert not [text for text in output if f"Water the {word}" in text or f"{word}.py" in text]
    for path in lab.root.rglob("*"):
        if path.is_file() and not path.is_relative_to(lab.root / "garden"):
            data = path.read_bytes()
            assert not [word for word in SEALED if f"Water the {word}".encode() in data], path


def test_holdout_log_tampered_ledger_exits_with_5(tmp_path: Path) -> None:
    """A ledger that the lock does not know is an error with its own exit code, and says why."""
    lab = make_holdout_lab(tmp_path)
    lab.freeze()
    fine = lab.invoke("holdout", "log", lab.config)
    assert fine.returncode == 0, fine.stderr
    assert "12 sealed tasks; opened 0 of 1 declared time" in fine.stdout
    lab.files.ledger.write_text('{"number":1}\n')
    broken = lab.invoke("holdout", "log", lab.config)
    assert broken.returncode == 5
    assert "is no ledger line" in broken.stderr
