"""Numbers with their nouns."""

from __future__ import annotations

import re
from pathlib import Path

from coldrun.tasks.lib.plain_text import counted, noun, times
from tests.evaluations import CONFIG, EvaluationLab


def test_counted_one_takes_no_s() -> None:
    """Of one, minus one, none and many."""
    assert [counted(number, "task") for number in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]
    assert counted(2, "repository", "repositories") == "2 repositories"
    assert [noun(number, "task") for number in (-1.0, 1, 0.5)] == ["task", "task", "tasks"]
    assert [times(number) for number in (0, 1, 2)] == ["0 times", "once", "2 times"]


def test_reports_of_a_single_task_say_nothing_of_one_tasks(tmp_path: Path) -> None:
    """Freeze, run, show, panels and compare, on a panel of one task."""
    lab = EvaluationLab(tmp_path).prepare(1, config=CONFIG)
    lab.run()
    said = [
        lab.invoke(*words).stdout
        for words in (
            ("freeze", lab.config),
            ("report", "last"),
            ("show", "last", "--misses"),
            ("show", "last", "--discrimination"),
            ("panels",),
            ("compare", "last", "last"),
        )
    ]
    assert all(said)
    assert re.findall(r"(?<![.\d])1 (?:of them )?[a-z]+s\b.{0,20}", "\n".join(said)) == []
