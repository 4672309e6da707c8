"""Backfill and decomposition, conducted on real products without an orchestrator."""

from __future__ import annotations

import pytest

from coldrun.tasks.history.campaign import PointRequest, measure_point
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.watch import Watch, watching
from tests.history.small import (
    Killed,
    SmallHistory,
    failing,
    killed_at,
    point_statuses,
    run_ids,
    statuses,
)


@pytest.mark.soak
def test_decompose_by_bisection_measures_what_it_needs(small: SmallHistory) -> None:
    """Two changes among eight commits are found with fewer points; the rest are blind spots."""
    small.build(8, 8, 8, 16, 16, 16, 24, 24)
    found = small.conduct()
    assert [
        (step.to, step.measures["exact"].difference)
        for step in found.steps
        if step.status == "changed"
    ] == [(small.commits[3], 8.0), (small.commits[6], 8.0)]
    assert found.counts.points < 8
    assert [spot.commits for spot in found.blind_spots] == [
        step.commits - 1 for step in found.steps if step.commits > 1
    ]
    assert found.sum is not None
    assert (found.sum.adds_up, found.sum.steps_difference) == (True, 16)
    assert found.exit_code == 0


def test_decompose_of_a_change_and_its_revert_names_the_blind_spot(small: SmallHistory) -> None:
    """Ends that look alike hide what is between them, and the report says so; --all sees it."""
    small.build(8, 2, 8, 8)
    found = small.conduct()
    assert statuses(found) == ["unchanged"]
    assert [(spot.from_, spot.to, spot.commits) for spot in found.blind_spots] == [
        (small.commits[0], small.commits[3], 2)
    ]
    assert any(warning.startswith("blind spot") for warning in found.warnings)
    assert point_statuses(found) == ["measured", "skipped", "skipped", "measured"]
    whole = small.conduct(is_whole=True)
    assert [step.measures["exact"].difference for step in whole.steps] == [-6, 6, 0]
    assert whole.sum is not None
    assert whole.sum.churn == 12
    assert list(whole.sum.flapping_tasks) == [f"t{n:02}" for n in range(2, 8)]
    assert not whole.blind_spots


def test_adapter_that_is_edited_in_mid_run_stops_the_history(small: SmallHistory) -> None:
    """All points are measured with the same files; undone, the history goes on, else it is new."""
    small.build(8, 9, 10)
    adapter = small.config.parent / "arm.py"
    text = adapter.read_text()
    measured: list[str] = []

    def measure(asked: PointRequest) -> Report:
        measured.append(asked.commit)
        adapter.write_text(text + "# edited\n")
        return measure_point(asked)

    with pytest.raises(UsageError, match="tool changed while the history ran"):
        small.conduct("backfill", measure)
    assert len(measured) == 1
    adapter.write_text(text)
    assert set(point_statuses(small.conduct("backfill"))) == {"measured"}


def test_backfill_measures_equal_trees_once(small: SmallHistory) -> None:
    """An empty commit and an exact revert stand on the run of the tree they repeat."""
    small.add("start", range(8))
    small.add("say nothing")
    small.add("change", range(16))
    small.add("revert", range(8))
    small.freeze()
    history = small.conduct("backfill")
    first, _, changed, last = small.commits
    assert point_statuses(history) == ["measured", "same_tree", "measured", "same_tree"]
    assert [point.same_as for point in history.points] == [None, first, None, first]
    assert (history.counts.points, history.counts.runs) == (2, 3)
    assert [(step.from_, step.to, step.commits) for step in history.steps] == [
        (first, changed, 1),
        (changed, last, 1),
    ]
    assert [step.measures["exact"].difference for step in history.steps] == [8, -8]


@pytest.mark.soak
def test_backfill_with_reuse_replays_candidates_and_executes_controls(small: SmallHistory) -> None:
    """The second time sealed answers are labelled replays, and steps on them are unverified."""
    small.seal()
    small.build(8, 20)
    first = small.conduct("backfill", mode="reuse")
    assert first.evidence == "executed"
    assert statuses(first) == ["changed"]
    again = small.conduct("backfill", mode="reuse")
    assert (again.evidence, again.exit_code) == ("mixed", 0)
    assert [point.evidence for point in again.points] == ["mixed", "mixed"]
    assert all(point.replayed_from for point in again.points)
    assert statuses(again) == ["unverified"]
    rows = small.select(
        "SELECT arm, evidence, count(*) AS n FROM captures WHERE run_id IN (SELECT unnest(?)) "
        "GROUP BY ALL ORDER BY ALL",
        run_ids(again),
    )
    # three answers a run are executed as a check, and the closing repeat executes everything
    assert {(row["arm"], row["evidence"]): row["n"] for row in rows} == {
        ("control", "executed"): 72,
        ("tool", "executed"): 30,
        ("tool", "replayed"): 42,
    }


def test_backfill_point_that_fails_is_recorded_and_the_rest_goes_on(small: SmallHistory) -> None:
    """A set-up that fails is a failed point with its reason; the step around it is a bundle."""
    small.add("start", range(8))
    small.add("broken set-up", range(12), setup_sh="echo no compiler here; exit 3\n")
    small.add("mended", range(20), setup_sh="true\n")
    small.freeze()
    history = small.conduct("backfill")
    assert point_statuses(history) == ["measured", "failed", "measured"]
    assert "no compiler here" in (history.points[1].reason or "")
    assert statuses(history) == ["bundle"]
    assert history.steps[0].commits == 2
    assert small.commits[1][:12] in history.steps[0].reasons[0]
    assert history.exit_code == 0
    rows = small.select("SELECT status FROM points ORDER BY committed_at")
    assert [row["status"] for row in rows] == ["measured", "failed", "measured"]


@pytest.mark.soak
def test_decompose_around_a_point_that_fails_splits_what_it_can(small: SmallHistory) -> None:
    """The midpoint cannot be measured: its neighbours are, and the change stays a bundle of two."""
    small.build(8, 8, 8, 20, 20)
    history = small.conduct(measure=failing(small.commits[2]))
    changed = [step for step in history.steps if step.up_tasks]
    assert [(step.from_, step.to, step.status) for step in changed] == [
        (small.commits[1], small.commits[3], "bundle")
    ]
    assert "no adapter prerequisites" in changed[0].reasons[0]


def test_decompose_whose_end_fails_is_invalid(small: SmallHistory) -> None:
    """Without an end there is nothing to attribute: exit code 5, both ends tried."""
    small.build(8, 12)
    history = small.conduct(measure=failing(small.commits[1]))
    assert (history.exit_code, history.verdict) == (5, "invalid")
    assert point_statuses(history) == ["measured", "failed"]
    assert history.steps == []


@pytest.mark.soak
def test_history_after_a_crash_continues_at_other_prices(small: SmallHistory) -> None:
    """What was measured before is not measured again, and what tokens cost decides nothing."""
    prices = small.config.parent / "prices.toml"
    text = 'date = 2026-11-{}\nsource = "a"\ncurrency = "USD"\n[models.small]\ninput = {}\n'
    prices.write_text(text.format(29, 1))
    small.write(small.config.read_text() + '\n[prices]\nfile = "prices.toml"\n')
    small.build(4, 9, 14, 19)
    with pytest.raises(Killed):
        small.conduct(is_whole=True, measure=killed_at(4))
    before = {row["run_id"] for row in small.select("FROM runs")}
    assert len(before) == 3
    prices.write_text(text.format(30, 2))
    history = small.conduct(is_whole=True)
    assert before <= set(run_ids(history))
    assert any("continued after an interruption" in warning for warning in history.warnings)
    assert set(statuses(history)) <= {"changed", "below_noise"}
    assert len(statuses(history)) == 3
    journals = small.warehouse / "history"
    assert len(list(journals.glob("*.json"))) == 1
    small.conduct(is_whole=True)
    assert len(list(journals.glob("*.json"))) == 2


def test_control_that_moves_confounds_the_steps_around_it(small: SmallHistory) -> None:
    """A control that answers otherwise at one point makes both its steps doubtful, and says so."""
    small.build(8, 8, 8)
    calls = 0

    def on_event(event: object) -> None:
        nonlocal calls
        calls += getattr(event, "state", "") == "begins"
        # the order is: first, last, middle, first again
        small.control_file.write_text("1 2 3" if calls != 3 else " ".join(map(str, range(14))))

    with watching(Watch(on_event=on_event)):
        history = small.conduct("backfill")
    assert statuses(history) == ["confounded", "confounded"]
    assert "the control control moved (11 up, 0 down)" in history.steps[0].reasons
    assert [control.verdict for control in history.closing_controls] == ["NO_DRIFT"]


def test_degraded_state_at_one_end_confounds_the_step(small: SmallHistory) -> None:
    """A gain that came with a fallback is no gain of the commit."""
    small.add("start", range(8))
    small.add("change", range(20), degraded="yes")
    small.freeze()
    history = small.conduct("backfill")
    assert statuses(history) == ["confounded"]
    assert "degraded" in history.steps[0].reasons[0]
    assert history.counts.degraded == 24


def test_docs_only_commit_that_moves_the_score_is_a_warning(small: SmallHistory) -> None:
    """Documentation cannot move a score unless the measurement reads it."""
    small.add("start", range(8))
    small.add("explain", README_md=" ".join(map(str, range(8, 18))))
    small.freeze()
    history = small.conduct("backfill")
    assert history.steps[0].is_docs_only
    assert history.steps[0].measures["exact"].difference == 10
    assert any("documentation only" in warning for warning in history.warnings)
