"""Two landed runs compared, and the trend over all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coldrun.tasks.history.chart import trend_chart
from coldrun.tasks.history.comparison import compare_runs
from coldrun.tasks.history.outcomes import read_floors, read_key_differences, read_run
from coldrun.tasks.history.score_trend import Trend
from coldrun.tasks.judge.land_judgement import run_here
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.run.run_lifecycle import RunRequest
from tests.history.small import SmallHistory, failing


def _run(small: SmallHistory, commit: str, trials: int | None = None) -> str:
    request = RunRequest(warehouse=small.warehouse, trials=trials)
    return run_here(small.load(), request, commit).report.run_id


def test_comparison_says_in_one_sentence_what_changed(small: SmallHistory) -> None:
    """Totals, ups, downs, p, the noise floor and where the keys differ."""
    first, second = small.add("start", range(8)), small.add("better", range(2, 20))
    small.freeze()
    before, again, after = (_run(small, commit) for commit in (first, first, second))
    done = small.invoke("compare", before, after, "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    tool, control = found["arms"]
    assert tool["sentence"] in done.stderr
    figures = {"up": 12, "down": 2, "difference": 10, "before": 8, "after": 18, "n": 24}
    unknown = {"low": 0, "high": 0, "p": 0}
    assert tool["measures"]["exact"] | unknown == {**figures, **unknown, "holm_p": None}
    assert (tool["status"], tool["down_tasks"]) == ("changed", ["t00", "t01"])
    assert tool["noise"]["pairs"] == 1
    assert tool["differs_in"] == ["product"]
    assert (control["status"], control["role"]) == ("unchanged", "control")
    assert [item["verdict"] for item in found["controls"]] == ["NO_DRIFT"]
    assert found["verdict"] == tool["sentence"]
    assert "exact 8 → 18 of 24 (+10 tasks" in found["verdict"]
    markdown = small.invoke("compare", before, again, "--markdown", "-").stdout
    assert "unchanged, task by task" in markdown


def test_runs_that_cannot_be_compared_are_named(small: SmallHistory) -> None:
    """Another panel, other trials: one line that says which and what."""
    (commit,) = small.build(8).commits
    first, twice = _run(small, commit), _run(small, commit, trials=2)
    with pytest.raises(UsageError, match="different number of times"):
        _compare(small, first, twice)
    tasks = small.config.parent / "tasks.jsonl"
    tasks.write_text("".join(tasks.read_text().splitlines(keepends=True)[:-2]))
    small.freeze(force=True)
    other = _run(small, commit)
    with pytest.raises(UsageError, match=r"different panels .*sha256:.*sha256:"):
        _compare(small, first, other)
    small.write(small.config.read_text().replace('also = ["recall"]', "also = []"))
    small.freeze(force=True)
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
    bar = '[[bar]]\narm = "tool"\nmeasure = "exact"\nat_least = 0.5\n'
    small.write(small.config.read_text() + bar)
    small.build(8, 9, 3, 20)
    first, second, broken, last = small.commits
    small.conduct("backfill", failing(broken))
    svg = tmp_path / "trend.svg"
    done = small.invoke("trend", small.config, "--json", "-", "--svg", svg)
    assert done.returncode == 0, done.stderr
    trend = Trend.model_validate_json(done.stdout)
    assert [(point.commit, point.arms["tool"].count) for point in trend.points] == [
        (first, 8),
        (second, 9),
        (last, 20),
    ]
    assert [(step.arm, step.to, step.difference) for step in trend.steps] == [("tool", last, 11)]
    assert trend.rules["bar: tool ≥ 0.5"] == 0.5
    assert any(name.startswith("null: ") for name in trend.rules)
    text = svg.read_text()
    assert text.startswith("<svg")
    assert ">+11<" in text
    assert ">+1<" not in text
    assert ">null: constant 0.042<" in trend_chart(trend)


def test_trend_without_points_says_how_to_begin(small: SmallHistory) -> None:
    """Nothing was measured yet: the command to start with is named."""
    done = small.build(8).invoke("trend", small.config)
    assert done.returncode == 2
    assert "coldrun backfill" in done.stderr
