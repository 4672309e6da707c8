"""A run split by stratum, and weighted back to what it was sampled from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.report.document import Table
from coldrun.tasks.report.run_document import find_stratum, stratum_blocks
from tests.evaluations import CONFIG, EvaluationLab
from tests.holdouts import make_holdout_lab

HALF_RIGHT = """\
def answer(query):
    found = re.findall(r"item-\\d+", query)
    return {"items": [{"path": path} for path in found if path != "item-1"]}
"""


@pytest.fixture(autouse=True)
def _private_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config-home"))


def test_strata_of_a_mined_panel_add_up_to_it(tmp_path: Path) -> None:
    """Language, kind, number of files and named paths, each with its number of tasks."""
    lab = make_holdout_lab(tmp_path)
    lab.freeze()
    report = lab.run().report
    assert {"names_gold", "files", "language", "kind"} <= set(report.strata)
    for parts in report.strata.values():
        for arm in ("bm25", "grep"):
            assert sum(part[arm]["n"] for part in parts.values()) == 12
    assert report.strata["files"]["single"]["bm25"] == {"hit@1": 1.0, "n": 12.0}
    assert report.panel.names_gold_share == 0.0
    with pytest.raises(UsageError, match=r"no stratum 'colour'; it has files, kind, language"):
        find_stratum(report, "colour")
    _, table = stratum_blocks(report, "language")
    assert isinstance(table, Table)
    assert table.headers == ["language", "tasks", *(arm.name for arm in report.arms)]
    whole = [f"{arm.measures['hit@1'].value:.3f}" for arm in report.arms]
    assert table.rows == [["python", "12", *whole]]


def test_report_by_a_stratum_prints_it_in_all_forms(tmp_path: Path) -> None:
    """The table is on the terminal, in Markdown and in the JSON."""
    lab = make_holdout_lab(tmp_path)
    lab.freeze()
    lab.run()
    page = tmp_path / "report.md"
    done = lab.invoke("report", "last", "--by", "language", "--markdown", page)
    assert "hit@1 by language, 12 tasks; the nulls come first" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert "hit@1 by language, 12 tasks; the nulls come first" in text
    assert "| language | tasks | empty | constant | most-changed | random |" in text
    assert "| python | 12 | 0.000 |" in text
    strata = json.loads(lab.invoke("report", "last", "--json", "-").stdout)["strata"]
    assert {"constant", "random", "bm25"} <= set(strata["language"]["python"])
    refused = lab.invoke("report", "last", "--by", "colour")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no stratum 'colour'" in refused.stderr


def test_strata_knowledge_cutoff_makes_a_stratum_of_older_tasks(tmp_path: Path) -> None:
    """Tasks up to the declared day may have been seen in training; undated ones are apart."""
    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG + "knowledge_cutoff = 2026-03-01\n")
    lab.write_arm()
    days = ["2026-02-28", "2026-03-01T23:00:00Z", "2026-03-02", "2026-04-01", None, None, None]
    lab.write_rows(
        [
            {"id": f"t{n}", "query": f"item-{n}", "gold": [f"item-{n}"]}
            | ({"date": day} if day else {})
            for n, day in enumerate(days)
        ]
    )
    lab.freeze()
    parts = lab.run().report.strata["knowledge_cutoff 2026-03-01"]
    assert {value: part["reader"]["n"] for value, part in parts.items()} == {
        "older": 2,
        "newer": 2,
        "undated": 3,
    }


def test_report_by_knowledge_cutoff_needs_the_date_only_where_there_are_two(tmp_path: Path) -> None:
    """The short name will do as long as it means one stratum."""
    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG + "knowledge_cutoff = 2026-03-01\n")
    lab.write_arm()
    lab.write_tasks(6)
    lab.freeze()
    lab.run()
    done = lab.invoke("report", "last", "--by", "knowledge_cutoff", "--markdown", "-")
    assert "exact by knowledge_cutoff 2026-03-01, 6 tasks" in done.stdout
    assert "| knowledge_cutoff 2026-03-01 | tasks |" in done.stdout
    second = CONFIG[CONFIG.index("[[arm]]") :].replace('"reader"', '"other"')
    lab.write(lab.config.read_text() + second + "knowledge_cutoff = 2026-04-01\n")
    lab.run()
    refused = lab.invoke("report", "last", "--by", "knowledge_cutoff")
    assert refused.returncode == 2
    both = "knowledge_cutoff 2026-03-01, knowledge_cutoff 2026-04-01"
    assert f"is the start of several strata: {both}; name one" in refused.stderr
