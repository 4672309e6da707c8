"""The article's three ways to publish a number of another product, each of them closed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.judge.report_model import ArmPart, Report
from coldrun.tasks.lib.errors import PointError, UsageError
from coldrun.tasks.run.prepare import prepare_evaluation_point
from coldrun.tasks.run.run_lifecycle import Mode, RunRequest, execute_locally, start_run
from coldrun.warehouse.reader import connect, select_rows
from tests.scenarios.gated_search import ANY, NO_HASHES, RIGHT, GatedSearch, write_search

OLD_HITS, NEW_HITS = 12, 39
"""What the tool finds with the first gate and with the last one, of 42 tasks."""


@pytest.fixture
def product(tmp_path: Path) -> GatedSearch:
    """The old gate, then the mended one with the old answers committed beside it."""
    made = GatedSearch(tmp_path)
    made.add("search with a gate", write_search())
    stale = "".join(json.dumps({"id": f"t{n:02}", "paths": []}) + "\n" for n in range(42))
    mended = write_search(hashes=NO_HASHES, gate=ANY, message=RIGHT)
    made.add("mend the gate, keep the captured rows", mended, results_dev_partial_jsonl=stale)
    return made.freeze()


def run(product: GatedSearch, commit: str, mode: Mode = "cold") -> Report:
    """Measure one commit from start to landing."""
    evaluation = product.load()
    point = prepare_evaluation_point(evaluation, commit)
    request = RunRequest(warehouse=product.warehouse, mode=mode)
    started = start_run(evaluation, request, point=point)
    execute_locally(started, concurrency=2)
    return finish_run(started).report


def tool(report: Report) -> ArmPart:
    """The default arm of the product."""
    return next(arm for arm in report.arms if arm.name == "tool")


def test_stale_capture_never_enters_a_run_of_another_commit(product: GatedSearch) -> None:
    """Neither cold nor with --reuse do the old product's rows stand for the new one's."""
    old, new = product.commits
    before = run(product, old)
    after = run(product, new)
    assert (tool(before).measures["hit@5"].count, before.evidence) == (OLD_HITS, "executed")
    assert (tool(after).measures["hit@5"].count, after.counts.replayed) == (NEW_HITS, 0)
    again = run(product, new, "reuse")
    assert tool(again).replayed_from == [after.run_id]
    product.add("a comment", write_search(hashes=NO_HASHES, gate=ANY, message=RIGHT) + "# later\n")
    later = run(product, product.commits[-1], "reuse")
    assert (tool(later).executed, tool(later).replayed, later.evidence) == (42, 0, "mixed")
    assert {arm.name for arm in later.arms if arm.replayed} == {"search", "grep"}


def test_stale_capture_copied_into_a_dead_run_is_refused(product: GatedSearch) -> None:
    """Files of another product in a run's own folder stop the resumption, and nothing is mixed."""
    old, new = product.commits
    evaluation = product.load()
    request = RunRequest(warehouse=product.warehouse)
    dead = start_run(evaluation, request, point=prepare_evaluation_point(evaluation, old))
    execute_locally(dead, concurrency=2)
    dead.abandon()
    other = start_run(evaluation, request, point=prepare_evaluation_point(evaluation, new))
    other.abandon()
    for path in dead.store.folder.glob("*.json"):
        if path.name != "run.json" and not path.name.startswith("session-"):
            (other.store.folder / path.name).write_bytes(path.read_bytes())
    resume = RunRequest(warehouse=product.warehouse, mode="resume", resume=other.run_id)
    with pytest.raises(UsageError, match="product"):
        start_run(evaluation, resume, point=prepare_evaluation_point(evaluation, new))


def test_wrong_directory_is_invalid_and_no_score_of_the_commit(
    product: GatedSearch, tmp_path: Path
) -> None:
    """A harness that loads the product from where it stood finds nothing there."""
    old, new = product.commits
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["git", "clone", "-q", product.product.path, elsewhere], check=True)
    subprocess.run(["git", "-C", elsewhere, "checkout", "-q", old], check=True)
    adapter = product.config.parent / "adapter.py"
    text = adapter.read_text()
    assert text.count("str(Path.cwd())") == 1
    adapter.write_text(text.replace("str(Path.cwd())", repr(str(elsewhere))))
    report = run(product, new)
    assert (report.verdict, report.evidence, report.exit_code) == ("invalid", "invalid", 5)
    assert report.counts.infra >= report.counts.tasks
    assert any("failed in the tool itself" in warning for warning in report.warnings)


def test_commit_whose_setup_fails_is_an_error_and_no_score(product: GatedSearch) -> None:
    """What could not be set up was not measured: no run, no row, no zero."""
    text = product.config.read_text()
    product.config.write_text(
        text.replace('repo = "../product"', 'repo = "../product"\nsetup = ["false"]')
    )
    with pytest.raises(PointError):
        run(product, product.commits[-1])
    assert select_rows(connect(product.warehouse), "SELECT run_id FROM runs") == []
