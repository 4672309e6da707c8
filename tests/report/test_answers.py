"""The answers of a run, one by one and by class, and its panel's power to tell arms apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from coldrun.cli.stored import show as command
from coldrun.tasks.judge.answer_rows import (
    count_arm_misses,
    discriminate,
    list_answers,
)
from coldrun.tasks.judge.load_run import load_record, load_report
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.report.answer_document import answer_blocks, discrimination_lines
from coldrun.tasks.report.markdown import to_markdown
from tests.evaluations import CONFIG, EvaluationLab, arm_of

MIXED = """\
def answer(query):
    number = int(re.search(r"item-(\\d+)", query).group(1))
    if number % 4 == 0:
        return {"items": []}
    if number % 4 == 1:
        return {"items": [{"path": "elsewhere"}]}
    if number % 4 == 2:
        return {"items": [{"path": f"item-{number}"}, {"path": "and-more"}]}
    return {"items": [{"path": f"item-{number}"}]}
"""

SECOND = """
[[arm]]
name = "plain"
role = "control"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "plain.py"
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> EvaluationLab:
    """Twelve tasks: `reader` gets a quarter of them exactly, `plain` all."""
    made = EvaluationLab(tmp_path_factory.mktemp("answers"))
    made.write(CONFIG + SECOND)
    made.write_arm(MIXED)
    made.write_arm("", name="plain.py")
    made.write_tasks(12)
    made.freeze()
    made.run()
    return made


def test_list_answers_gives_every_planned_answer_with_its_miss(lab: EvaluationLab) -> None:
    """One row per task, arm and trial; the classes add up to what the report counts."""
    record = load_record(lab.warehouse, "last")
    rows = list_answers(record)
    assert len(rows) == 24
    assert count_arm_misses(rows) == {
        "reader": {"abstained": 3, "not_retrieved": 3, "too_many_items": 3},
        "plain": {},
    }
    hits = [row for row in rows if row.arm == "reader" and row.miss is None]
    assert [row.first_gold for row in hits] == [1, 1, 1]
    report = load_report(lab.warehouse, "last").report
    assert arm_of(report, "reader").misses == count_arm_misses(rows)["reader"]


def test_list_answers_unknown_arm_or_task_names_what_there_is(lab: EvaluationLab) -> None:
    """A wrong name is answered with the right ones."""
    record = load_record(lab.warehouse, "last")
    with pytest.raises(UsageError, match="it has reader, plain"):
        list_answers(record, arm="constant")
    with pytest.raises(UsageError, match="ids such as t0000"):
        list_answers(record, task_id="x")


def test_answer_blocks_mark_the_right_items(lab: EvaluationLab) -> None:
    """The reader of a listing sees at a glance which items are gold."""
    record = load_record(lab.warehouse, "last")
    rows = list_answers(record, arm="reader", task_id="t0002")
    assert to_markdown(answer_blocks(rows, limit=1)) == (
        "### t0002 · reader: all of the gold, and more\n\n- query: where is item-2 handled?\n"
        "- gold: `item-2`\n- answer:\n  1. \\+ `item-2`\n  2. `and-more`"
    )


def test_show_misses_prints_counts_then_answers_up_to_the_limit(lab: EvaluationLab) -> None:
    """The command as people call it."""
    arguments = ["last", "--misses", "--limit", "2", "--warehouse", str(lab.warehouse)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert "reader: 9 of 12 answers missed at exact" in done.output
    assert "plain: 0 of 12 answers missed" in done.output
    assert "… 7 more; --limit 9 prints them" in done.output


def test_discrimination_of_a_pilot_lists_who_solved_what(lab: EvaluationLab) -> None:
    """Nine tasks tell the two arms apart; the smallest effect is printed beside it."""
    rows = list_answers(load_record(lab.warehouse, "last"))
    found = discriminate(rows)
    assert (len(found.all_solve), len(found.none_solve), found.possible_discordance) == (3, 0, 9)
    text = "\n".join(discrimination_lines(rows, "exact"))
    assert "largest possible discordance: 9 tasks; the most that two arms differed on: 9" in text
    assert "smallest detectable effect with 80 % power" in text


def test_show_discrimination_warns_of_a_panel_that_separates_nobody(tmp_path: Path) -> None:
    """Two arms that solve the same tasks cannot be told apart, whatever is reported of them."""
    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG + SECOND)
    lab.write_arm()
    lab.write_arm("", name="plain.py")
    lab.write_tasks(8)
    lab.freeze()
    lab.run()
    arguments = ["last", "--discrimination", "--warehouse", str(lab.warehouse)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert "8 solved by every arm" in done.output
    assert "only 0 of 8 tasks were solved by some arms and not by others" in done.output
