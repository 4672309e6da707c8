"""The article re-enacted: a constant answer beats the agent on one sample, and not on the other."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from coldrun.tasks.judge.report_model import MeasurePart, Report
from coldrun.tasks.report.console import PeopleConsole
from coldrun.tasks.report.run_document import print_report, render_markdown
from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab, arm_of
from tests.scenarios import ticket_shop

CONFIG = """\
[panel]
kind = "jsonl"
file = "tasks.jsonl"
repo = "../corpus"
base = "HEAD"
answer = "set"

[sample]
rule = "{rule}"
size = 20
seed = {seed}

[measure]
primary = "exact"
also = ["recall", "precision", "f1"]

[[arm]]
name = "agent"
role = "candidate"
kind = "command"
argv = ["{{python}}", "{{adapter}}"]
adapter = "ticket_shop_arm.py"
"""


@pytest.fixture
def shop(
    tmp_path: Path, build_repository: Callable[..., RepositoryBuilder]
) -> Callable[[str], EvaluationLab]:
    """The 117 tickets, sampled by a rule and frozen."""

    def make(rule: str) -> EvaluationLab:
        corpus = build_repository(tmp_path / "corpus")
        corpus.commit("the shop", {name: f"{name}\n" for name in ticket_shop.REPOSITORIES})
        lab = EvaluationLab(tmp_path, name="shop")
        arm = Path(ticket_shop.__file__).with_name("ticket_shop_arm.py")
        shutil.copy(arm, lab.config.parent)
        lab.write(CONFIG.format(rule=rule, seed=ticket_shop.SEED))
        lab.write_rows(ticket_shop.list_tickets())
        lab.freeze()
        return lab

    return make


def printed(report: Report) -> str:
    """The report as a person reads it on a terminal."""
    stream = io.StringIO()
    print_report(report, PeopleConsole(file=stream, width=160), is_full=True)
    return stream.getvalue()


def measures_of(report: Report, name: str) -> dict[str, MeasurePart]:
    return arm_of(report, name).measures


def test_shop_is_117_tickets_in_eight_shapes_over_thirty_repositories() -> None:
    """The generated panel is the article's."""
    rows = ticket_shop.list_tickets()

    assert len({row["id"] for row in rows}) == len(rows) == 117
    assert len({tuple(sorted(row["gold"])) for row in rows}) == 8
    assert len(set(ticket_shop.REPOSITORIES)) == 30


def test_null_baseline_of_largest_first_measures_nothing(
    shop: Callable[[str], EvaluationLab],
) -> None:
    """Nineteen of twenty tickets have one answer: an arm that reads them loses to that answer."""
    lab = shop("largest-first")

    report = lab.run().report

    constant, agent = measures_of(report, "constant"), measures_of(report, "agent")
    assert (constant["exact"].count, constant["recall"].value) == (19, 1.0)
    assert agent["exact"].count == 16
    assert (report.verdict, report.exit_code) == ("measured_nothing", 3)
    assert "agent: ** measured nothing **" in printed(report)
    assert "0.800" not in printed(report)
    assert "0.800" not in render_markdown(report)
    scores = lab.select("SELECT * FROM arm_scores WHERE arm = 'agent' AND measure = 'exact'")
    assert [(row["value"], row["measured_nothing"]) for row in scores] == [(0.8, True)]


def test_null_baseline_of_answer_shape_measures(shop: Callable[[str], EvaluationLab]) -> None:
    """All shapes in the sample: the constant falls to 15 %, and a worse-looking 60 % counts."""
    report = shop("answer-shape").run().report

    constant, agent = measures_of(report, "constant"), measures_of(report, "agent")
    assert constant["exact"].value == pytest.approx(0.15)
    assert constant["recall"].value == pytest.approx(0.55, abs=0.03)
    assert agent["exact"].count == 12
    assert (report.verdict, report.exit_code) == ("measured", 0)
    assert report.gates[0].outcome == "beats_nulls"
    text = printed(report)
    assert "measured nothing" not in text
    assert "0.600 (12)" in text
    assert "better than every null (best: constant, 3)" in text


def test_freeze_of_largest_first_warns_before_anything_is_asked(
    shop: Callable[[str], EvaluationLab],
) -> None:
    """The distribution is printed before and after sampling, and says that one answer dominates."""
    lab = shop("largest-first")

    done = lab.coldrun("freeze", lab.config)

    assert done.returncode == 0, done.stderr
    assert "answers before sampling: 117 tasks, 8 shapes, the commonest has 16.2%" in done.stdout
    assert (
        "answers in the balanced part: 20 tasks, 2 shapes, the commonest has 95.0%" in done.stdout
    )
    assert "warning: one answer is right for 19 of 20 tasks" in done.stdout
    assert (
        'warning: [sample] rule = "largest-first" takes the tasks with the most gold' in done.stdout
    )
    constant = next(line for line in done.stdout.splitlines() if line.startswith("constant"))
    assert constant.split()[1:] == ["0.162", "0.950"]
    assert "up to date; nothing was written" in done.stdout


@pytest.mark.prefect
@pytest.mark.soak
def test_null_baseline_through_the_command_line_exits_3_then_0(
    shop: Callable[[str], EvaluationLab],
) -> None:
    """The real chain on a real server: `run` withholds the first score and prints the second."""
    lab = shop("largest-first")
    nothing = lab.coldrun("run", lab.config, "--json", "nothing.json")
    lab.write(CONFIG.format(rule="answer-shape", seed=ticket_shop.SEED))
    refrozen = lab.coldrun("freeze", lab.config, "--force")
    measured = lab.coldrun("run", lab.config, "--json", "measured.json")

    assert nothing.returncode == 3, nothing.stderr
    assert nothing.stdout.startswith("executed 20 · replayed 0 · tool failures 0 · panel shop ")
    assert "** measured nothing **" in nothing.stdout
    assert "0.800" not in nothing.stdout
    stored = json.loads((lab.root / "nothing.json").read_text())
    agent = next(arm for arm in stored["arms"] if arm["name"] == "agent")
    assert (agent["measures"]["exact"]["count"], agent["is_withheld"]) == (16, True)
    assert refrozen.returncode == 0, refrozen.stderr
    assert measured.returncode == 0, measured.stderr
    assert "MEASURED: agent names exactly the right items" in measured.stdout
    assert "registered after the fact: sample.rule changed after a run existed" in measured.stdout
