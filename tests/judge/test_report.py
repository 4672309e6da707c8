"""The report of a run: what is printed first, what is withheld, and what JSON always has."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.judge.load_run import load_report
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.report.console import PeopleConsole
from coldrun.tasks.report.run_document import print_report, render_markdown
from tests.evaluations import CONFIG, EvaluationLab, arm_of

SOME_RIGHT = """
def answer(query, plain=answer):
    found = plain(query)
    return found if found["items"][0]["path"] in ("item-1", "item-5", "item-9") else {"items": []}
"""
NONE_RIGHT = """
def answer(query):
    return {"items": []}
"""
MANY_FAIL = """
def answer(query, plain=answer):
    return plain(query) if "item-1" in query else {"error": "index is not ready"}
"""
SECONDS = "\n[measure]\nminimum_seconds_per_answer = 30\n"
BAR = '\n[[bar]]\narm = "reader"\nmeasure = "exact"\nat_least = 0.1\n'

CASES: dict[str, tuple[str, str, int]] = {
    "measured": ("", BAR, 0),
    "inconclusive": (SOME_RIGHT, BAR, 6),
    "measured_nothing": (NONE_RIGHT, BAR, 3),
    "replayed": ("", BAR, 4),
    "did_not_run": ("", SECONDS + BAR, 4),
    "invalid": (MANY_FAIL, BAR, 5),
}
"""For each verdict the arm and the settings that lead to it, and its exit code."""


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[EvaluationLab, Report]]:
    """One landed run for each verdict."""
    found = {}
    for verdict, (arm, settings, _) in CASES.items():
        lab = EvaluationLab(tmp_path_factory.mktemp(verdict))
        lab.prepare(arm=arm, config=CONFIG + settings)
        report = lab.run().report
        if verdict == "replayed":
            report = lab.run("reuse").report
        found[verdict] = (lab, report)
    return found


def printed(report: Report, width: int = 200) -> str:
    stream = io.StringIO()
    print_report(report, PeopleConsole(file=stream, width=width), is_full=True)
    return stream.getvalue()


def details(report: Report, width: int = 200) -> str:
    return printed(report, width).partition("\nDetails: ")[2].partition("\n\n")[2]


@pytest.mark.parametrize("verdict", CASES)
def test_report_of_every_verdict_has_all_fields_of_schema_1(
    labs: dict[str, tuple[EvaluationLab, Report]], verdict: str
) -> None:
    """Scripts may rely on every field, whatever came of the run."""
    report = json.loads(labs[verdict][1].to_json())

    assert (report["verdict"], report["exit_code"]) == (verdict, CASES[verdict][2])
    check_shape(report, SHAPE)
    assert [arm["role"] for arm in report["arms"]] == ["null"] * 5 + ["candidate"]
    assert len(report["gates"][0]["against"]) == 5


SHAPE: dict[str, Any] = {
    "schema": int,
    "run_id": str,
    "verdict": str,
    "evidence": str,
    "exit_code": int,
    "started_at": str,
    "wall_seconds": float,
    "counts": dict.fromkeys(
        ("tasks", "planned", "executed", "replayed", "resumed", "infra", "abstained", "degraded"),
        int,
    ),
    "panel": {
        **dict.fromkeys(("name", "digest"), str),
        **dict.fromkeys(("base", "head"), (str, type(None))),
        **dict.fromkeys(("candidates", "solvable"), int),
        "drops": {"created_after_base": int},
        "distribution": {"shapes": int, "top_share": float, "effective_shapes": float},
    },
    "point": (dict, type(None)),
    "environment": {"digest": str},
    "arms": [
        {
            **dict.fromkeys(("name", "role", "kind"), str),
            "n": int,
            "measures": {
                "exact": {
                    "value": float,
                    "count": (int, type(None)),
                    "low": float,
                    "high": float,
                }
            },
        }
    ],
    "gates": [
        {
            **dict.fromkeys(("arm", "measure", "outcome"), str),
            "margin_tasks": (int, float),
            "mde_tasks": (float, type(None)),
            "against": [
                {
                    "arm": str,
                    "up": (int, type(None)),
                    "down": (int, type(None)),
                    "p": float,
                    "difference": float,
                }
            ],
            "beaten_by": list,
        }
    ],
    "bars": [{"arm": str, "measure": str, "at_least": float, "value": float, "met": bool}],
    "warnings": list,
}
"""The fields that the design fixes, with their types."""


def check_shape(value: Any, shape: Any, name: str = "report") -> None:
    if isinstance(shape, dict):
        assert isinstance(value, dict), name
        for key, part in shape.items():
            assert key in value, f"{name}.{key}"
            check_shape(value[key], part, f"{name}.{key}")
    elif isinstance(shape, list):
        assert value, f"{name} is empty"
        for number, entry in enumerate(value):
            check_shape(entry, shape[0], f"{name}[{number}]")
    else:
        assert isinstance(value, shape), f"{name} is {value!r}"


@pytest.mark.parametrize("verdict", CASES)
def test_report_begins_with_what_executed_and_what_was_replayed(
    labs: dict[str, tuple[EvaluationLab, Report]], verdict: str
) -> None:
    """Line one, on the terminal and in Markdown: counts, panel hash, point."""
    report = labs[verdict][1]
    first = printed(report).splitlines()[0]

    counts = "executed 3 · replayed 9" if verdict == "replayed" else "executed 12 · replayed 0"
    failures = 9 if verdict == "invalid" else 0
    digits = report.panel.digest.removeprefix("sha256:")[:12]
    assert first == f"{counts} · tool failures {failures} · panel toy {digits}"
    assert render_markdown(report).splitlines()[0] == f"**{first}**"
    assert details(report).startswith(f"verdict {verdict} · evidence {report.evidence}")


@pytest.mark.parametrize("verdict", CASES)
def test_report_prints_every_null_above_the_arms(
    labs: dict[str, tuple[EvaluationLab, Report]], verdict: str
) -> None:
    """Nobody can read a result without having passed what doing nothing scores."""
    report = labs[verdict][1]
    for text in (details(report), render_markdown(report)):
        lines = [line.strip("| ") for line in text.splitlines()]
        rows = [
            line.split()[0] for line in lines if re.match(r"[a-z-]+ .*(null|candidate)\b", line)
        ]
        assert rows[:6] == ["empty", "everything", "constant", "random", "permuted", "reader"]


def test_score_that_measured_nothing_is_withheld_and_stored_with_its_flag(
    tmp_path: Path,
) -> None:
    """Withheld where people read, stored for those who must look: flagged, never lost."""
    lab = EvaluationLab(tmp_path)
    lab.write()
    lab.write_arm("def answer(query):\n    return {'paths': ['item-0']}")
    # nine of twelve tasks have one answer, and the arm always gives it
    lab.write_tasks(gold=lambda number: ["item-0"] if number < 9 else [f"item-{number}"])
    lab.freeze()
    report = lab.run().report

    assert report.verdict == "measured_nothing"
    drawn = next(line for line in printed(report).splitlines() if line.startswith("reader  "))
    assert drawn.split(maxsplit=1)[1] == "** measured nothing **"
    for text in (details(report), render_markdown(report)):
        row = next(line for line in text.splitlines() if re.match(r"\|? ?reader", line))
        assert "** measured nothing **" in row
        assert "0.750" not in row
        assert "reader: ** measured nothing ** at exact" in text
    stored = arm_of(Report.model_validate_json(report.to_json()), "reader")
    assert (stored.is_withheld, stored.measures["exact"].count) == (True, 9)
    flags = lab.select("SELECT DISTINCT measured_nothing FROM scores WHERE arm = 'reader'")
    assert flags == [{"measured_nothing": True}]


@pytest.mark.parametrize("verdict", CASES)
def test_report_read_back_from_the_warehouse_is_the_same(
    labs: dict[str, tuple[EvaluationLab, Report]], verdict: str
) -> None:
    """`report RUN` computes it again from the stored answers, and nothing differs."""
    lab, report = labs[verdict]

    again = load_report(lab.warehouse, report.run_id).report

    assert json.loads(again.to_json()) == json.loads(report.to_json())


def test_invalid_and_unrun_reports_make_no_claim(
    labs: dict[str, tuple[EvaluationLab, Report]],
) -> None:
    """What must not be read as a measurement has no headline score."""
    for verdict in ("invalid", "did_not_run"):
        text = printed(labs[verdict][1])
        assert "reader: no claim, the run is" in text
    assert "REPLAYED, not measured: 9 of 12 answers" in printed(labs["replayed"][1])


def test_bar_that_fails_is_printed_and_exits_1(tmp_path: Path) -> None:
    """A bar is a claim of its own: the nulls are beaten, and still not enough."""
    arm = """
def answer(query, plain=answer):
    return {"items": []} if "item-1" in query else plain(query)
"""
    lab = EvaluationLab(tmp_path).prepare(24, arm=arm, config=CONFIG + BAR.replace("0.1", "0.99"))
    report = lab.run().report

    assert (report.verdict, report.exit_code, report.bars[0].met) == ("measured", 1, False)
    assert "bar FAILED: reader exact 0.542 ≥ 0.990" in printed(report)
