"""Two landed runs compared, and the trend over all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from coldrun.cli.compare import command as compare_command
from coldrun.cli.trend import command as trend_command
from coldrun.tasks.history.campaign import PointRequest, measure_point
from coldrun.tasks.history.chart import trend_chart
from coldrun.tasks.history.comparison import compare_runs
from coldrun.tasks.history.outcomes import read_floors, read_key_differences, read_run
from coldrun.tasks.history.score_trend import Trend
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.run.run_lifecycle import RunRequest
from tests.history.small import SmallHistory, failing


def _run(small: SmallHistory, commit: str, trials: int | None = None) -> str:
    report = measure_point(
        PointRequest(
            evaluation=small.load(),
            request=RunRequest(warehouse=small.warehouse, trials=trials),
            commit=commit,
            label="",
        )
    )
    return report.run_id


def test_comparison_says_in_one_sentence_what_changed(small: SmallHistory) -> None:
    """Totals, ups, downs, p, the noise floor and where the keys differ."""
    first, second = small.add("start", range(8)), small.add("better", range(2, 20))
    small.freeze()
    before, again, after = (_run(small, commit) for commit in (first, first, second))
    runner = CliRunner(env={"COLDRUN_WAREHOUSE": str(small.warehouse)})
    done = runner.invoke(compare_command, [before, after, "--json", "-"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    tool, control = found["arms"]
    assert tool["sentence"] in done.stderr
    assert tool["measures"]["exact"] | {"low": 0, "high": 0, "p": 0} == {
        "up": 12,
        "down": 2,
        "difference": 10,
        "before": 8,
        "after": 18,
        "n": 24,
        "low": 0,
        "high": 0,
        "p": 0,
        "holm_p": None,
    }
    assert (tool["status"], tool["down_tasks"]) == ("changed", ["t00", "t01"])
    assert tool["noise"]["pairs"] == 1
    assert tool["differs_in"] == ["product"]
    assert (control["status"], control["role"]) == ("unchanged", "control")
    assert [item["verdict"] for item in found["controls"]] == ["NO_DRIFT"]
    assert found["verdict"] == tool["sentence"]
    assert "exact 8 → 18 of 24 (+10 tasks" in found["verdict"]
    markdown = runner.invoke(compare_command, [before, again, "--markdown", "-"]).stdout
    assert "unchanged, task by task" in markdown


def test_runs_that_cannot_be_compared_are_named(small: SmallHistory) -> None:
    """Another panel, other trials: one line that says which and what."""
    commit = small.add("start", range(8))
    small.freeze()
    first, twice = _run(small, commit), _run(small, commit, trials=2)
    with pytest.raises(UsageError, match="different number of times"):
        _compare(small, first, twice)
    rows = (small.config.parent / "tasks.jsonl").read_text().splitlines()[:-2]
    (small.config.parent / "tasks.jsonl").write_text("\n".join(rows) + "\n")
    small.freeze()
    other = _run(small, commit)
    with pytest.raises(UsageError, match=r"different panels .*sha256:.*sha256:"):
        _compare(small, first, other)
    small.config.write_text(small.config.read_text().replace('also = ["recall"]', "also = []"))
    small.freeze()
    with pytest.raises(UsageError, match=r"different measures \(exact, recall and exact\)"):
        _compare(small, other, _run(small, commit))


def _compare(small: SmallHistory, before: str, after: str) -> None:
    first, second = read_run(small.warehouse, before), read_run(small.warehouse, after)
    compare_runs(
        first,
        second,
        floors=read_floors(small.warehouse, first, measure="exact"),
        key_differences=read_key_differences(small.warehouse, before, after),
    )


def test_trend_marks_only_steps_that_a_test_supports(small: SmallHistory, tmp_path: Path) -> None:
    """Points of any command, oldest first, with bars and the null line; a one-task step is bare."""
    small.config.write_text(
        small.config.read_text() + '[[bar]]\narm = "tool"\nmeasure = "exact"\nat_least = 0.5\n'
    )
    small.add("start", range(8))
    small.add("one more", range(9))
    small.add("broken", range(3))
    small.add("much more", range(20))
    small.freeze()
    small.conduct(small.request("backfill"), failing(small.commits[2]))
    runner = CliRunner(
        env={"COLDRUN_WAREHOUSE": str(small.warehouse), "COLDRUN_SCRATCH": str(small.scratch)}
    )
    svg = tmp_path / "trend.svg"
    done = runner.invoke(trend_command, [str(small.config), "--json", "-", "--svg", str(svg)])
    assert done.exit_code == 0, done.output
    trend = Trend.model_validate_json(done.stdout)
    assert [point.commit for point in trend.points] == [
        small.commits[0],
        small.commits[1],
        small.commits[3],
    ]
    assert [point.arms["tool"].count for point in trend.points] == [8, 9, 20]
    assert [(step.arm, step.to, step.difference) for step in trend.steps] == [
        ("tool", small.commits[3], 11)
    ]
    assert trend.rules["bar: tool ≥ 0.5"] == 0.5
    assert any(name.startswith("null: ") for name in trend.rules)
    text = svg.read_text()
    assert text.startswith("<svg")
    assert ">+11<" in text
    assert ">+1<" not in text
    assert ">null: constant 0.042<" in trend_chart(trend)


def test_trend_without_points_says_how_to_begin(small: SmallHistory) -> None:
    """Nothing was measured yet: the command to start with is named."""
    small.add("start", range(8))
    small.freeze()
    runner = CliRunner(
        env={"COLDRUN_WAREHOUSE": str(small.warehouse), "COLDRUN_SCRATCH": str(small.scratch)}
    )
    done = runner.invoke(trend_command, [str(small.config)])
    assert done.exit_code == 2
    assert "coldrun backfill" in done.stderr
