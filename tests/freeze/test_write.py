"""The files of a freeze: written whole, left alone without a change, never replaced silently."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
from click.testing import CliRunner

from coldrun.cli.main import main
from coldrun.tasks.freeze.lock import lock_to_bytes, read_lock
from coldrun.tasks.lib.errors import LedgerError, LockError, StorageError
from coldrun.tasks.lib.machine.files import write_whole
from tests.evaluations import CONFIG, EvaluationLab

LATER = "2026-09-01T00:00:00+00:00"


@pytest.fixture
def lab(tmp_path: Path) -> EvaluationLab:
    return EvaluationLab(tmp_path).prepare()


def snapshot(lab: EvaluationLab) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in lab.config.parent.iterdir()
    }


def test_freeze_again_without_a_change_writes_nothing(lab: EvaluationLab) -> None:
    """Not even the date: the files keep their bytes and their times."""
    before = snapshot(lab)

    assert lab.freeze(now=LATER) == "unchanged"
    assert lab.freeze(now=LATER, force=True) == "unchanged"
    assert snapshot(lab) == before


def test_freeze_again_with_other_words_in_its_notes_is_no_change(lab: EvaluationLab) -> None:
    """Notes say what mining met; the panel is what it was."""
    lock = read_lock(lab.files)
    lock["panel"]["notes"] = ["1 tickets named before base are left out"]
    lab.files.lock.write_bytes(lock_to_bytes(lock))

    assert lab.freeze(now=LATER) == "unchanged"


def test_freeze_again_with_a_change_needs_force_and_names_it(lab: EvaluationLab) -> None:
    """What would change is named, with both hashes, and nothing is touched."""
    lab.write(CONFIG.replace('rule = "all"', 'rule = "random"\nsize = 5'))
    before = snapshot(lab)
    digest = json.loads(lab.files.lock.read_bytes())["panel"]["digest"]

    with pytest.raises(LockError, match=r"would change \(sample.rule, sample.size\)") as caught:
        lab.freeze(now=LATER)

    assert f"from {digest} to sha256:" in str(caught.value)
    assert "repeat with --force" in str(caught.value)
    assert snapshot(lab) == before


def test_freeze_with_force_remembers_the_earlier_hash_and_date(lab: EvaluationLab) -> None:
    """Twice replaced, the lock knows both earlier panels."""
    first = json.loads(lab.files.lock.read_bytes())
    lab.write(CONFIG.replace('rule = "all"', 'rule = "random"\nsize = 5'))
    assert lab.freeze(force=True, had_runs=True, now=LATER) == "replaced"
    second = json.loads(lab.files.lock.read_bytes())
    lab.write(CONFIG.replace('rule = "all"', 'rule = "random"\nsize = 6'))
    lab.freeze(force=True, now=LATER)
    third = json.loads(lab.files.lock.read_bytes())

    assert second["history"] == [
        {
            "digest": first["panel"]["digest"],
            "frozen_at": first["frozen_at"],
            "replaced_at": LATER,
            "changed": ["sample.rule", "sample.size"],
            "had_runs": True,
        }
    ]
    assert [entry["digest"] for entry in third["history"]] == [
        first["panel"]["digest"],
        second["panel"]["digest"],
    ]
    assert lab.load().frozen.digest == third["panel"]["digest"]


def test_freeze_again_restores_a_lost_panel(lab: EvaluationLab) -> None:
    """The same tasks are mined again; no force is needed to have the same bytes back."""
    before = lab.load().frozen
    lab.files.panel.unlink()

    assert lab.freeze(now=LATER) == "restored"
    assert lab.load().frozen == before


def test_freeze_again_over_a_changed_panel_needs_force(lab: EvaluationLab) -> None:
    """Bytes that somebody changed are not thrown away unasked."""
    before = lab.load().frozen
    lab.files.panel.write_bytes(b"changed\n")

    with pytest.raises(LockError, match="is not the panel that was frozen"):
        lab.freeze(now=LATER)
    assert lab.files.panel.read_bytes() == b"changed\n"
    assert lab.freeze(now=LATER, force=True) == "restored"
    assert lab.load().frozen == before


def test_freeze_over_a_damaged_lock_needs_force_and_remembers_its_hash(
    lab: EvaluationLab,
) -> None:
    """What cannot be read may have been somebody's registration."""
    lab.files.lock.write_text("{")
    with pytest.raises(LockError, match="cannot read the lock"):
        lab.freeze()

    assert lab.freeze(force=True) == "replaced"
    assert len(lab.load().frozen.lock["history"]) == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[measure]\nmargin_tasks = 0\n", "measure.margin_tasks"),
        ('[measure]\nprimary = "f1"\n', "measure.also, measure.primary"),
        ('[[bar]]\narm = "reader"\nmeasure = "f1"\nat_least = 0.1\n', "bar"),
    ],
)
def test_bars_and_measures_changed_after_a_run_are_shown_in_later_reports(
    lab: EvaluationLab, text: str, name: str
) -> None:
    """Registered after the fact is not registered, and every later report says so."""
    lab.run()
    lab.write(CONFIG + "\n" + text)
    lab.freeze(force=True, had_runs=True, now=LATER)
    report = lab.run().report

    assert report.panel.changes_after_the_fact == [
        f"{name} changed after a run existed, on {LATER}"
    ]


def test_bars_changed_before_any_run_are_nobodys_business(lab: EvaluationLab) -> None:
    """Until something has run, there is nothing to fit a bar to."""
    lab.write(CONFIG + "\n[measure]\nmargin_tasks = 0\n")
    lab.freeze(force=True, had_runs=False)

    assert lab.run().report.panel.changes_after_the_fact == []


def test_freeze_with_the_same_tasks_says_that_the_panel_stays(lab: EvaluationLab) -> None:
    """From one hash to the same hash would be a riddle."""
    digest = lab.load().frozen.digest
    lab.write(CONFIG + "\n[measure]\nmargin_tasks = 0\n")

    with pytest.raises(LockError, match=rf"\(measure.margin_tasks\): the panel stays {digest};"):
        lab.freeze()


@pytest.mark.parametrize("loss", ["gone", "edited", "of another version"])
def test_lock_that_is_lost_after_a_run_loses_no_registration(lab: EvaluationLab, loss: str) -> None:
    """The run remembers the lock: freezing anew shows what changed since, with its date."""
    lab.run()
    known = lab.load().frozen.lock
    lab.write(CONFIG + "\n[measure]\nmargin_tasks = 0\n")
    if loss == "gone":
        lab.files.lock.unlink()
    else:
        text = lab.files.lock.read_text()
        old, new = (
            ("2026-08-01", "2026-07-01") if loss == "edited" else ('schema": 1', 'schema": 0')
        )
        lab.files.lock.write_text(text.replace(old, new))
    freeze = ["freeze", str(lab.config), "--warehouse", str(lab.warehouse), "--force"]
    assert CliRunner().invoke(main, freeze).exit_code == 0

    changes = lab.run().report.panel.changes_after_the_fact
    assert len(changes) == 1
    assert changes[0].startswith("measure.margin_tasks changed after a run existed, on ")

    lab.files.lock.unlink()
    lab.write()
    lab.files.panel.unlink()
    assert lab.freeze(had_runs=True, last_run_lock=known) == "frozen"
    assert lab.load().frozen.lock == known


def test_bars_changed_after_a_run_of_an_earlier_panel_are_shown(lab: EvaluationLab) -> None:
    """Two changes one after the other are no way around what one would show."""
    lab.run()
    freeze = ["freeze", str(lab.config), "--warehouse", str(lab.warehouse), "--force"]
    sampled = CONFIG.replace('rule = "all"', 'rule = "random"\nsize = 9')
    for text in (sampled, sampled + "\n[measure]\nmargin_tasks = 0\n"):
        lab.write(text)
        assert CliRunner().invoke(main, freeze).exit_code == 0

    assert [
        change.split(" changed ")[0] for change in lab.run().report.panel.changes_after_the_fact
    ] == [
        "sample.rule, sample.size",
        "measure.margin_tasks",
    ]


def test_freeze_warns_of_gold_from_that_is_no_arm(lab: EvaluationLab) -> None:
    """A misspelt name would let an arm be measured against itself."""
    for name, count in (("reader", 0), ("raeder", 1)):
        lab.write(CONFIG.replace('answer = "set"', f'answer = "set"\ngold_from = "{name}"'))
        warnings = lab.mine_and_freeze().warnings
        assert sum(f"gold_from = '{name}' is no arm" in text for text in warnings) == count


def test_freeze_without_a_lock_beside_a_ledger_is_refused(lab: EvaluationLab) -> None:
    """What was opened, and read, would be forgotten."""
    lab.files.ledger.write_bytes(b"{}\n")
    lab.files.lock.unlink()

    with pytest.raises(
        LedgerError, match=r"toy\.lock is gone, and it holds the head of the ledger"
    ):
        lab.freeze(force=True)
    assert not lab.files.lock.exists()


@pytest.mark.parametrize(("before", "after", "name"), [(12, 40, "panel"), (2, 1, "lock")])
def test_freeze_on_a_full_disk_leaves_the_earlier_files_as_they_were(
    lab: EvaluationLab, before: int, after: int, name: str
) -> None:
    """Panel and lock change together or not at all, whichever of them does not fit."""
    lab.write_tasks(before)
    lab.freeze(force=True)
    earlier = snapshot(lab)
    lab.write_tasks(after)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = len(lab.files.lock.read_bytes()) + 100 if name == "panel" else 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(StorageError, match=f"cannot write {getattr(lab.files, name)}"):
            lab.freeze(force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    later = snapshot(lab)
    later["tasks.jsonl"] = earlier["tasks.jsonl"]
    assert later == earlier


def test_write_whole_where_it_cannot_write_is_a_storage_error(tmp_path: Path) -> None:
    """A folder that is not there, or that is a file."""
    (tmp_path / "file").touch()
    for place in (tmp_path / "missing" / "x.lock", tmp_path / "file" / "x.lock"):
        with pytest.raises(StorageError, match=f"cannot write {place}"):
            write_whole(place, b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
