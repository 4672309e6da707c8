"""The article's series of fixes, attributed commit by commit: what each was really worth."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coldrun.tasks.history.chart import history_chart
from coldrun.tasks.history.history_document import history_document
from coldrun.tasks.history.history_model import History
from coldrun.tasks.lib.machine.file_locks import hold_lock
from coldrun.tasks.report.markdown import to_markdown
from tests.scenarios.gated_search import (
    ANY,
    GAINS,
    NO_HASHES,
    RIGHT,
    STATES,
    GatedSearch,
    nets,
    write_search,
)


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, History]:
    """The six states, decomposed by bisection and backfilled, once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    kinds = ("decompose", "backfill")
    with hold_lock(folder / "gated.lock"):
        if not (folder / "gated" / "backfill.json").exists():
            product = GatedSearch(folder / "gated").add_states().freeze()
            for kind in kinds:
                text = product.history(kind).to_json()
                (folder / "gated" / f"{kind}.json").write_text(text)
    return {
        kind: History.model_validate_json((folder / "gated" / f"{kind}.json").read_bytes())
        for kind in kinds
    }


@pytest.fixture
def decomposition(measured: dict[str, History]) -> History:
    """The six states, decomposed by bisection."""
    return measured["decompose"]


def test_gains_lie_at_the_commits_of_the_gate_fixes(decomposition: History) -> None:
    """Each fix has its tasks, the wording and the irrelevant change have none."""
    steps = decomposition.steps
    assert [step.subject for step in steps] == [subject for subject, _ in STATES[1:]]
    assert tuple(nets(steps)) == GAINS
    assert [step.status for step in steps] == [
        "changed",
        "changed",
        "unchanged",
        "changed",
        "unchanged",
    ]
    assert [step.measures["hit@5"].down for step in steps] == [0, 0, 0, 0, 0]
    assert steps[3].up_tasks == [f"t{n}" for n in range(31, 39)]
    assert steps[3].measures["hit@5"].p == pytest.approx(2**-8)


def test_steps_add_up_at_every_cut_off(decomposition: History) -> None:
    """The sum of the steps is the change between the ends."""
    found = decomposition
    first, last = found.points[0], found.points[-1]
    for measure in ("hit@5", "hit@1", "hit@8"):
        ends = (last.measures[measure].count or 0) - (first.measures[measure].count or 0)
        assert sum(nets(found.steps, measure)) == ends
    assert found.sum is not None
    assert (found.sum.adds_up, found.sum.ends_difference, found.sum.churn) == (True, 27, 0)


def test_bypass_equals_the_default_arm_at_the_end_within_one_task(decomposition: History) -> None:
    """What the policy of refusing costs once the gate works: one task."""
    arms = decomposition.points[-1].arms
    tool, bypass = arms["tool"]["hit@5"].count, arms["bypass"]["hit@5"].count
    assert (tool, bypass) == (39, 40)
    first = decomposition.points[0].arms
    assert (first["tool"]["hit@5"].count, first["bypass"]["hit@5"].count) == (12, 40)


def test_controls_were_executed_at_every_point_and_did_not_move(decomposition: History) -> None:
    """BM25 and grep answer alike at every point, and at the first point again at the end."""
    found = decomposition
    for step in found.steps:
        assert [(control.arm, control.up, control.down) for control in step.controls] == [
            ("search", 0, 0),
            ("grep", 0, 0),
        ]
    assert [control.verdict for control in found.closing_controls] == ["NO_DRIFT", "NO_DRIFT"]
    assert found.counts.replayed == 0


def test_bisection_needs_no_more_points_than_backfill_and_finds_the_same(
    measured: dict[str, History],
) -> None:
    """Both attribute the same tasks to the same commits."""
    bisected, backfilled = measured["decompose"], measured["backfill"]
    assert bisected.counts.points <= backfilled.counts.points == 6
    assert [(step.from_, step.to, step.up_tasks, step.down_tasks) for step in bisected.steps] == [
        (step.from_, step.to, step.up_tasks, step.down_tasks) for step in backfilled.steps
    ]


def test_report_says_first_what_executed(decomposition: History) -> None:
    """Nobody has to read past the first line to learn whether anything ran."""
    text = to_markdown(history_document(decomposition))
    assert text.startswith("**executed 1344 · replayed 0 · tool failures 0 · panel gated ")
    assert "controls did not move: search, grep" in text
    assert "+8 (8/0)" in text


def test_chart_marks_the_steps_that_a_test_supports(decomposition: History) -> None:
    """The SVG has the three gains and nothing at the other two steps."""
    svg = history_chart(decomposition)
    assert svg.startswith("<svg")
    assert [svg.count(f">{text}<") for text in ("+10", "+9", "+8", "0")] == [1, 1, 1, 0]


@pytest.mark.soak
def test_change_and_revert_is_found_by_all_only(tmp_path: Path) -> None:
    """Bisection names the commits that it did not look at; --all finds both moves."""
    good = write_search(hashes=NO_HASHES, gate=ANY, message=RIGHT)
    product = GatedSearch(tmp_path / "lab").add_states(
        [
            ("search", good),
            ("refuse on the first token", write_search(hashes=NO_HASHES, message=RIGHT)),
            ("take it back", good.replace("BATCH = 8", "BATCH = 9")),
        ]
    )
    product.freeze()
    bisected = product.history()
    assert nets(bisected.steps) == [0]
    assert [(spot.from_, spot.to) for spot in bisected.blind_spots] == [
        (product.commits[0], product.commits[2])
    ]
    assert any("made and reverted there would not show" in text for text in bisected.warnings)
    whole = product.history(is_whole=True)
    assert nets(whole.steps) == [-17, 17]
    assert [step.status for step in whole.steps] == ["changed", "changed"]
    assert whole.blind_spots == []
