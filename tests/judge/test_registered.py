"""What is shown of settings that were changed once runs existed."""

from __future__ import annotations

from pathlib import Path

import pytest

from coldrun.cli.freeze import _find_last_run_lock
from coldrun.tasks.freeze.lock import read_lock
from coldrun.tasks.lib.errors import LockError
from tests.evaluations import CONFIG, EvaluationLab

BAR = '\n[[bar]]\narm = "reader"\nmeasure = "exact"\nat_least = 0.5\n'
LATER = "2026-09-09T09:09:09+00:00"


def has_runs(lab: EvaluationLab) -> bool:
    return _find_last_run_lock(lab.warehouse, lab.files) is not None


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (BAR, "bar"),
        ("\n[measure]\nmargin_tasks = 2\n", "measure.margin_tasks"),
        ("\n[measure]\nminimum_seconds_per_answer = 0.001\n", "measure.minimum_seconds_per_answer"),
        ('\n[measure]\nprimary = "f1"\n', "measure.also, measure.primary"),
        ("\n[holdout]\nopenings = 3\n", "holdout"),
    ],
)
def test_run_after_registered_setting_changed_is_refused_until_frozen_again_then_shown(
    tmp_path: Path, setting: str, name: str
) -> None:
    """A bar, margin, guard or primary measure cannot be moved silently once there is a run."""
    lab = EvaluationLab(tmp_path).prepare()
    assert lab.run().report.panel.changes_after_the_fact == []
    lab.write(CONFIG + setting)
    with pytest.raises(LockError, match="no longer says what was frozen"):
        lab.load()
    had_runs = has_runs(lab)
    assert had_runs
    lab.freeze(force=True, had_runs=had_runs, now=LATER)
    changes = lab.run().report.panel.changes_after_the_fact
    assert changes == [f"{name} changed after a run existed, on {LATER}"]
    assert lab.run().report.panel.changes_after_the_fact == changes


def test_run_after_change_before_any_run_shows_nothing(tmp_path: Path) -> None:
    """Until the first run, registering is thinking."""
    lab = EvaluationLab(tmp_path).prepare()
    lab.write(CONFIG + BAR)
    had_runs = has_runs(lab)
    assert not had_runs
    lab.freeze(force=True, had_runs=had_runs)
    assert lab.run().report.panel.changes_after_the_fact == []


def test_run_with_another_share_of_tool_failures_allowed_says_so(tmp_path: Path) -> None:
    """That guard belongs to running, so it may change without freezing; never silently."""
    lab = EvaluationLab(tmp_path).prepare()
    lab.write(CONFIG.replace("concurrency = 2", "concurrency = 2\nmax_infra_share = 0.5"))
    (change,) = lab.run().report.panel.changes_after_the_fact
    assert change.startswith("run.max_infra_share is 0.5 in this run of ")
    assert "0.05 was registered on 2026-08-01" in change


def test_freeze_again_with_other_tasks_after_a_run_shows_that_they_changed(tmp_path: Path) -> None:
    """The settings are equal and the panel is not: it is shown as well."""
    lab = EvaluationLab(tmp_path).prepare()
    lab.run()
    lab.write_tasks(15)
    lab.freeze(force=True, had_runs=has_runs(lab), now=LATER)
    assert lab.run().report.panel.changes_after_the_fact == [
        f"the tasks (history, miner or clone) changed after a run existed, on {LATER}"
    ]
    assert read_lock(lab.files)["panel"]["tasks"] == 15
