"""Clusters, sampling budgets and latencies, from the configuration to the printed report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coldrun.tasks.config import parse_config
from coldrun.tasks.report.run_document import render_markdown
from coldrun.tasks.stats.clusters import cluster_sign_flip_p, clustered_mean
from tests.evaluations import CONFIG, EvaluationLab, arm_of
from tests.judge.test_costs import SPENDING, prepare
from tests.judge.test_report import printed

HALF = """
def answer(query, plain=answer):
    # right in two repositories of five, and on every fourth task elsewhere
    number = int(re.findall("[0-9]+", query)[0])
    return plain(query) if number % 5 < 2 or number % 4 == 0 else {"items": []}
"""
CLUSTER = CONFIG + '\n[measure]\nprimary = "exact"\ncluster = "repo"\n'


def clustered_lab(root: Path, config: str = CLUSTER) -> EvaluationLab:
    lab = EvaluationLab(root)
    lab.write(config)
    lab.write_arm(HALF)
    lab.write_rows(
        [
            {
                "id": f"t{number:02}",
                "query": f"item-{number}",
                "gold": [f"item-{number}"],
                "strata": {"repo": f"r{number % 5}"},
            }
            for number in range(40)
        ]
    )
    lab.freeze()
    return lab


def test_clusters_are_registered_described_and_printed_beside_the_plain_intervals(
    tmp_path: Path,
) -> None:
    """Whole repositories are right or wrong: the interval by clusters is the wider one."""
    report = clustered_lab(tmp_path).run().report
    found = report.clusters
    assert found is not None
    assert (found.stratum, found.clusters, found.smallest_p) == ("repo", 5, 1 / 32)

    right = np.array([float(n % 5 < 2 or n % 4 == 0) for n in range(40)])
    repos = [f"r{n % 5}" for n in range(40)]
    expected = clustered_mean(right, repos)
    score, plain = found.arms["reader"], arm_of(report, "reader").measures["exact"]
    assert score.value == plain.value == right.mean()
    assert score.design_effect == pytest.approx(expected.design_effect)
    assert score.effective_tasks == pytest.approx(40 / (expected.design_effect or 0))
    assert (score.low or 0) < plain.low
    difference = next(part for part in found.differences if part.against == "empty")
    assert difference.difference == right.mean()
    assert difference.p == cluster_sign_flip_p(right, repos, seed=0) == 1 / 32
    for text in (printed(report), render_markdown(report)):
        assert "by 5 clusters of repo, whose tasks are not independent" in text
        assert "independent tasks" in text
        assert "reader against constant, exact: " in text


def test_cluster_that_no_task_is_marked_with_is_a_warning(tmp_path: Path) -> None:
    """The strata that there are stand beside it."""
    report = clustered_lab(tmp_path, CLUSTER.replace('"repo"', '"repos"')).run().report
    assert report.clusters is None
    (warning,) = [text for text in report.warnings if "no task is marked with it" in text]
    assert "strata of this panel: repo" in warning


def test_cluster_that_is_not_named_is_in_no_lock() -> None:
    """Locks from before there was one stay valid."""
    panel = {"panel": {"kind": "jsonl", "file": "tasks.jsonl"}}
    assert "cluster" not in parse_config(panel).measure.model_dump(mode="json")
    named = parse_config({**panel, "measure": {"cluster": "repo"}}).measure
    assert named.model_dump(mode="json")["cluster"] == "repo"


def test_trials_have_a_budget_of_samples_and_one_trial_has_none(tmp_path: Path) -> None:
    """Every second task is right in one of two trials: two samples cover them all."""
    asked = tmp_path / "asked"
    asked.mkdir()
    flaky = f"""
def answer(query, plain=answer):
    number = int(re.findall("[0-9]+", query)[0])
    if number % 2:
        try:
            os.mkdir(f"{asked}/{{number}}")
            return {{"items": []}}
        except FileExistsError:
            pass
    return plain(query)
"""
    lab = EvaluationLab(tmp_path).prepare(
        20, arm=flaky, config=CONFIG.replace("[run]", '[run]\nsandbox = "none"')
    )
    report = lab.run(trials=2).report
    one, two = arm_of(report, "reader").budgets
    assert (one.samples, one.coverage) == (1, 0.75)
    assert (two.samples, two.coverage) == (2, 1.0)
    # one sample: right and taken; two: one right and one wrong, or two right
    assert one.verified["0.05"] == pytest.approx(0.95 * 0.75)
    mixed = 0.8 * 0.8 + 0.8 * 0.2 / 2
    assert two.verified["0.2"] == pytest.approx((mixed + 1 - 0.2**2) / 2)
    for text in (printed(report), render_markdown(report)):
        assert "reader, exact above 0 in 1/2 samples: coverage 0.750/1.000" in text
    assert arm_of(lab.run().report, "reader").budgets == []


def test_costs_compare_latencies_over_the_tasks_that_both_executed(tmp_path: Path) -> None:
    """Median and 95th percentile with their paired differences; replayed answers have none."""
    slow = """
def answer(query, plain=answer):
    time.sleep(0.02 if "direct" not in sys.argv else 0.002)
    usage = {"model": "small", "input_tokens": 100}
    return {**plain(query), "usage": usage}
"""
    lab = prepare(tmp_path, arm=slow, config=SPENDING)
    report = lab.run().report
    assert report.costs is not None
    (latency,) = report.costs.latencies
    assert (latency.arm, latency.against, latency.tasks) == ("tool", "direct", 20)
    seconds = latency.seconds
    assert 0 < seconds.p50_interval.low <= seconds.p50 <= seconds.p50_interval.high
    assert seconds.p95 > 0
    assert (seconds.ratio or 0) > 1
    for arm in report.costs.arms:
        assert (arm.median_seconds or 0) <= (arm.p95_seconds or 0)
    for text in (printed(report), render_markdown(report)):
        assert "tool against direct, seconds a task, paired over 20 tasks: median +" in text
        assert "s p95" in text
    replayed = lab.run("reuse").report.costs
    assert replayed is not None
    # three answers of each arm are executed to check the replays, now and then on the same tasks
    assert all(part.tasks <= 3 for part in replayed.latencies)
