"""Verdicts that would say more than what was executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.report import run_words as words
from tests.evaluations import CONFIG, EvaluationLab, arm_of

CONTROL = """
[[arm]]
name = "control"
role = "control"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "control.py"
"""

FAILING = """
def answer(query, plain=answer):
    if "item-1 " in query or "item-2 " in query:
        say(type="error", id=message["id"], message="index lost")
        raise SystemExit
    return plain(query)
"""


def test_a_replayed_candidate_is_not_measured_because_a_control_executed(tmp_path: Path) -> None:
    """A verdict is about the candidates: what else was executed proves nothing about them."""
    lab = EvaluationLab(tmp_path).prepare()
    first = lab.run().report
    assert first.verdict == "measured"
    lab.write(CONFIG + CONTROL)
    lab.write_arm("def answer(query):\n    return {'items': []}", name="control.py")

    report = lab.run("reuse").report

    assert (report.counts.executed, report.counts.replayed, report.evidence) == (15, 9, "mixed")
    assert (report.verdict, report.exit_code) == ("replayed", 4)
    assert words.headline(report, report.gates[0]).startswith("replayed, not measured: ")


def test_failures_of_one_arm_are_not_diluted_by_the_others(tmp_path: Path) -> None:
    """A control that fails is a weak rival, however many answers the run has in all."""
    lab = EvaluationLab(tmp_path).prepare(12, config=CONFIG + CONTROL)
    lab.write(CONFIG.replace('name = "reader"', 'name = "reader"\ntrials = 40') + CONTROL)
    lab.write_arm(FAILING, name="control.py")

    report = lab.run().report

    assert arm_of(report, "control").infra == 2
    assert report.verdict == "invalid"
    assert any("control" in reason for reason in report.reasons)


@pytest.mark.parametrize("null", ["everything", "most-changed", "permuted"])
def test_a_bar_against_any_null_is_judged_or_refused_before_the_run(
    tmp_path: Path, null: str
) -> None:
    bar = f"""
[[bar]]
arm = "reader"
measure = "exact"
against = "{null}"
margin_tasks = 1
"""
    second = CONTROL.replace('"control"', '"other"', 1).replace('"control"', '"candidate"')
    lab = EvaluationLab(tmp_path)
    lab.write_arm(name="control.py")
    lab.prepare(config=CONFIG + second + bar)

    if null == "most-changed":
        with pytest.raises(ConfigError, match=null):
            lab.load()
    else:
        assert [bar.met for bar in lab.run().report.bars] == [True]
