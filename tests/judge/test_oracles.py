"""Arms that had a hand in the gold."""

from __future__ import annotations

from pathlib import Path

import pytest

from coldrun.tasks.report.run_document import render_markdown
from tests.evaluations import CONFIG, EvaluationLab, arm_of

SEARCH = """
[[arm]]
name = "other"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "arm.py"
"""


def with_gold_from(value: str, *, component: str = "") -> str:
    text = CONFIG.replace('answer = "set"', f'answer = "set"\ngold_from = {value}')
    return text + (f'component = "{component}"\n' if component else "")


@pytest.mark.parametrize(
    ("gold_from", "component"),
    [('"reader"', ""), ('["reader"]', ""), ('"index"', "index")],
)
def test_run_sole_candidate_that_made_the_gold_is_refused_a_verdict(
    tmp_path: Path, gold_from: str, component: str
) -> None:
    """By its name or by its declared component: the score is withheld and the run is invalid."""
    lab = EvaluationLab(tmp_path).prepare(config=with_gold_from(gold_from, component=component))
    report = lab.run().report
    (gate,) = report.gates
    assert (report.verdict, report.exit_code, report.evidence) == ("invalid", 5, "executed")
    assert gate.outcome == "refused"
    assert gate.against == []
    assert "the gold was produced with" in gate.reason
    assert arm_of(report, "reader").is_withheld
    assert any("agreeing with oneself" in reason for reason in report.reasons)
    page = render_markdown(report).splitlines()
    row = next(line for line in page if line.startswith("| reader"))
    assert "no verdict" in row
    assert "1.000" not in row


def test_run_refused_candidate_leaves_the_verdict_to_the_others(tmp_path: Path) -> None:
    """The other candidate is judged as ever, and told that a comparison would not be fair."""
    bars = "".join(
        f'\n[[bar]]\narm = "{arm}"\nmeasure = "exact"\nat_least = 0.5\n'
        for arm in ("reader", "other")
    )
    lab = EvaluationLab(tmp_path).prepare(config=with_gold_from('"reader"') + SEARCH + bars)
    report = lab.run().report
    assert {gate.arm: gate.outcome for gate in report.gates} == {
        "reader": "refused",
        "other": "beats_nulls",
    }
    assert (report.verdict, report.exit_code) == ("measured", 0)
    assert any("at a disadvantage" in warning for warning in report.warnings)
    assert [bar.arm for bar in report.bars] == ["other"]
