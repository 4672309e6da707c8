"""`coldrun sql`: the tables and views of the warehouse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coldrun.warehouse.reader import VIEWS, connect
from tests.evaluations import EvaluationLab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> EvaluationLab:
    lab = EvaluationLab(tmp_path_factory.mktemp("sql")).prepare()
    lab.run()
    return lab


def test_sql_answers_in_all_forms(lab: EvaluationLab, tmp_path: Path) -> None:
    """A table for people, rows for programs; dates and maps are texts and objects there."""
    page = tmp_path / "rows.md"
    query = "SELECT arm, measure, value, n, started_at FROM arm_scores WHERE measure = 'exact'"
    done = lab.invoke("sql", query, "--json", "-", "--markdown", page)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["arm"], row["measure"], row["value"]) == ("reader", "exact", 1.0)
    assert "reader" in done.stderr
    assert "| reader | exact | 1.0 |" in page.read_text(encoding="utf-8")
    assert "no rows" in lab.invoke("sql", "SELECT * FROM flips").stdout


@pytest.mark.parametrize("view", sorted(path.stem for path in VIEWS.glob("*.sql")))
def test_every_view_is_named_in_the_help_and_can_be_asked(lab: EvaluationLab, view: str) -> None:
    """A view that nobody is told of answers nothing."""
    assert view in lab.invoke("sql", "--help").stdout
    assert connect(lab.warehouse).execute(f"SELECT count(*) FROM {view}").fetchone() is not None


def test_sql_that_cannot_be_answered_is_refused_with_its_reason(lab: EvaluationLab) -> None:
    """A wrong column is the caller's mistake: exit 2, and no traceback."""
    done = lab.invoke("sql", "SELECT nothing FROM runs")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'Referenced column "nothing" not found' in done.stderr
