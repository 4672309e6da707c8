"""Backfill and decomposition, conducted on real products without an orchestrator."""

from __future__ import annotations

import pytest

from coldrun.tasks.history.campaign import PointRequest, measure_point
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.watch import Watch, watching
from coldrun.warehouse.reader import connect, select_rows
from tests.history.small import Killed, SmallHistory, failing, killed_at, statuses


@pytest.mark.soak  # eighteen points; scenarios/test_stale_capture_history.py bisects six
def test_decompose_by_bisection_finds_what_all_finds(small: SmallHistory) -> None:
    """Two changes among eight commits lie at the same commits, with fewer points measured."""
    for number in range(8):
        small.add(
            f"commit {number}",
            range(8 if number < 3 else 16 if number < 6 else 24),
            note_md=f"{number}",
        )
    small.freeze()
    whole = small.conduct(small.request(is_whole=True))
    found = small.conduct(small.request())
    changed = [
        (step.to, step.measures["exact"].difference)
        for step in whole.steps
        if step.status == "changed"
    ]
    assert changed == [(small.commits[3], 8.0), (small.commits[6], 8.0)]
    assert [
        (step.to, step.measures["exact"].difference)
        for step in found.steps
        if step.status == "changed"
    ] == changed
    assert found.counts.points < whole.counts.points == 8
    assert [spot.commits for spot in found.blind_spots] == [
        step.commits - 1 for step in found.steps if step.commits > 1
    ]
    assert found.sum is not None
    assert found.sum.adds_up
    assert found.sum.steps_difference == 16
    assert found.exit_code == 0


def test_decompose_of_a_change_and_its_revert_names_the_blind_spot(small: SmallHistory) -> None:
    """Ends that look alike hide what is between them, and the report says so; --all sees it."""
    small.add("start", range(8))
    small.add("break it", range(2))
    small.add("mend it", range(8), note_md="mended")
    small.add("unrelated", other_md="x")
    small.freeze()
    found = small.conduct(small.request())
    assert statuses(found) == ["unchanged"]
    assert [(spot.from_, spot.to, spot.commits) for spot in found.blind_spots] == [
        (small.commits[0], small.commits[3], 2)
    ]
    assert any(warning.startswith("blind spot") for warning in found.warnings)
    assert [point.status for point in found.points] == [
        "measured",
        "skipped",
        "skipped",
        "measured",
    ]
    whole = small.conduct(small.request(is_whole=True))
    assert [step.measures["exact"].difference for step in whole.steps] == [-6, 6, 0]
    assert whole.sum is not None
    assert whole.sum.churn == 12
    assert list(whole.sum.flapping_tasks) == [f"t{n:02}" for n in range(2, 8)]
    assert not whole.blind_spots


def test_adapter_that_is_edited_in_mid_run_stops_the_history(small: SmallHistory) -> None:
    """All points are measured with the same files; undone, the history goes on, else it is new."""
    for number in range(3):
        small.add(f"change {number}", range(8 + number))
    small.freeze()
    adapter = small.config.parent / "adapter.py"
    text = adapter.read_text()
    request = small.request("backfill")
    measured: list[str] = []

    def measure(asked: PointRequest) -> Report:
        measured.append(asked.commit)
        adapter.write_text(text + "# edited\n")
        return measure_point(asked)

    with pytest.raises(UsageError, match="tool changed while the history ran"):
        small.conduct(request, measure)
    assert len(measured) == 1
    adapter.write_text(text)
    assert {point.status for point in small.conduct(request).points} == {"measured"}


def test_backfill_measures_equal_trees_once(small: SmallHistory) -> None:
    """An empty commit and an exact revert stand on the run of the tree they repeat."""
    small.add("start", range(8))
    small.add("say nothing")
    small.add("change", range(16))
    small.add("revert", range(8))
    small.freeze()
    history = small.conduct(small.request("backfill"))
    assert [point.status for point in history.points] == [
        "measured",
        "same_tree",
        "measured",
        "same_tree",
    ]
    assert [point.same_as for point in history.points] == [
        None,
        small.commits[0],
        None,
        small.commits[0],
    ]
    assert history.counts.points == 2
    assert history.counts.runs == 3
    assert [(step.from_, step.to, step.commits) for step in history.steps] == [
        (small.commits[0], small.commits[2], 1),
        (small.commits[2], small.commits[3], 1),
    ]
    assert [step.measures["exact"].difference for step in history.steps] == [8, -8]


@pytest.mark.soak
def test_backfill_with_reuse_replays_candidates_and_executes_controls(small: SmallHistory) -> None:
    """The second time product answers are labelled replays, and steps on them are unverified."""
    small.add("start", range(8))
    small.add("change", range(20))
    small.freeze()
    first = small.conduct(small.request("backfill", mode="reuse"))
    assert first.evidence == "executed"
    assert statuses(first) == ["changed"]
    again = small.conduct(small.request("backfill", mode="reuse"))
    assert again.evidence == "mixed"
    assert again.exit_code == 0
    assert [point.evidence for point in again.points] == ["replayed", "replayed"]
    assert all(point.replayed_from for point in again.points)
    assert statuses(again) == ["unverified"]
    rows = select_rows(
        connect(small.warehouse),
        "SELECT arm, evidence, count(*) AS n FROM captures WHERE run_id IN (SELECT unnest(?)) "
        "GROUP BY ALL ORDER BY ALL",
        [[run_id for point in again.points for run_id in point.run_ids]],
    )
    found = {(row["arm"], row["evidence"]): row["n"] for row in rows}
    # the closing repeat of the first point executes everything
    assert found == {
        ("control", "executed"): 72,
        ("tool", "executed"): 24,
        ("tool", "replayed"): 48,
    }


def test_backfill_point_that_fails_is_recorded_and_the_rest_goes_on(small: SmallHistory) -> None:
    """A set-up that fails is a failed point with its reason; the step around it is a bundle."""
    small.add("start", range(8))
    small.add("broken set-up", range(12), setup_sh="echo no compiler here; exit 3\n")
    small.add("mended", range(20), setup_sh="true\n")
    small.freeze()
    history = small.conduct(small.request("backfill"))
    assert [point.status for point in history.points] == ["measured", "failed", "measured"]
    assert "no compiler here" in (history.points[1].reason or "")
    assert statuses(history) == ["bundle"]
    assert history.steps[0].commits == 2
    assert small.commits[1][:12] in history.steps[0].reasons[0]
    assert history.exit_code == 0
    rows = select_rows(connect(small.warehouse), "SELECT status FROM points ORDER BY committed_at")
    assert [row["status"] for row in rows] == ["measured", "failed", "measured"]


@pytest.mark.soak
def test_decompose_around_a_point_that_fails_splits_what_it_can(small: SmallHistory) -> None:
    """The midpoint cannot be measured: its neighbours are, and the change stays a bundle of two."""
    for number in range(5):
        small.add(f"commit {number}", range(8 if number < 3 else 20), note_md=f"{number}")
    small.freeze()
    request = small.request()
    history = small.conduct(request, failing(small.commits[2]))
    changed = [step for step in history.steps if step.up_tasks]
    assert [(step.from_, step.to, step.status) for step in changed] == [
        (small.commits[1], small.commits[3], "bundle")
    ]
    assert "no adapter prerequisites" in changed[0].reasons[0]


def test_decompose_whose_end_fails_is_invalid(small: SmallHistory) -> None:
    """Without an end there is nothing to attribute: exit code 5, both ends tried."""
    small.add("start", range(8))
    small.add("end", range(12))
    small.freeze()
    history = small.conduct(small.request(), failing(small.commits[1]))
    assert (history.exit_code, history.verdict) == (5, "invalid")
    assert [point.status for point in history.points] == ["measured", "failed"]
    assert history.steps == []


@pytest.mark.soak
def test_decompose_after_a_crash_continues(small: SmallHistory) -> None:
    """What was measured before the program died is not measured again."""
    for number in range(4):
        small.add(f"commit {number}", range(4 + 5 * number))
    small.freeze()
    request = small.request(is_whole=True)
    with pytest.raises(Killed):
        small.conduct(request, killed_at(4))
    before = {row["run_id"] for row in select_rows(connect(small.warehouse), "FROM runs")}
    assert len(before) == 3
    history = small.conduct(request)
    assert before <= {run_id for point in history.points for run_id in point.run_ids}
    assert any("continued after an interruption" in warning for warning in history.warnings)
    assert statuses(history) == ["changed"] * 3 or set(statuses(history)) <= {
        "changed",
        "below_noise",
    }
    assert len(list((small.warehouse / "history").glob("*.json"))) == 1
    small.conduct(request)
    assert len(list((small.warehouse / "history").glob("*.json"))) == 2


@pytest.mark.soak
def test_history_after_a_crash_continues_at_other_prices(small: SmallHistory) -> None:
    """What tokens cost decides nothing that is measured."""
    for number in range(3):
        small.add(f"commit {number}", range(4 + 8 * number))
    small.freeze()
    prices = small.config.parent / "prices.toml"
    text = 'date = 2026-11-{}\nsource = "a"\ncurrency = "USD"\n[models.small]\ninput = {}\n'
    prices.write_text(text.format(29, 1))
    with small.config.open("a") as config:
        config.write('\n[prices]\nfile = "prices.toml"\n')
    with pytest.raises(Killed):
        small.conduct(small.request(is_whole=True), killed_at(3))
    before = {row["run_id"] for row in select_rows(connect(small.warehouse), "FROM runs")}

    prices.write_text(text.format(30, 2))
    history = small.conduct(small.request(is_whole=True))

    assert len(before) == 2
    assert before <= {run_id for point in history.points for run_id in point.run_ids}
    assert any("continued after an interruption" in warning for warning in history.warnings)
    assert len(list((small.warehouse / "history").glob("*.json"))) == 1


def test_control_that_moves_confounds_the_steps_around_it(small: SmallHistory) -> None:
    """A control that answers otherwise at one point makes both its steps doubtful, and says so."""
    small.add("start", range(8))
    small.add("middle", range(8), note_md="1")
    small.add("end", range(8), note_md="2")
    small.freeze()
    calls = 0

    def on_event(event: object) -> None:
        nonlocal calls
        calls += getattr(event, "state", "") == "begins"
        # the order is: first, last, middle, first again
        small.control_file.write_text("1 2 3" if calls != 3 else " ".join(map(str, range(14))))

    with watching(Watch(on_event=on_event)):
        history = small.conduct(small.request("backfill"))
    assert statuses(history) == ["confounded", "confounded"]
    assert "the control control moved (11 up, 0 down)" in history.steps[0].reasons
    assert [control.verdict for control in history.closing_controls] == ["NO_DRIFT"]


def test_degraded_state_at_one_end_confounds_the_step(small: SmallHistory) -> None:
    """A gain that came with a fallback is no gain of the commit."""
    small.add("start", range(8))
    small.add("change", range(20), degraded="yes")
    small.freeze()
    history = small.conduct(small.request("backfill"))
    assert statuses(history) == ["confounded"]
    assert "degraded" in history.steps[0].reasons[0]
    assert history.counts.degraded == 24


def test_docs_only_commit_that_moves_the_score_is_a_warning(small: SmallHistory) -> None:
    """Documentation cannot move a score unless the measurement reads it."""
    small.add("start", range(8))
    small.add("explain", README_md=" ".join(map(str, range(8, 18))))
    small.freeze()
    history = small.conduct(small.request("backfill"))
    assert history.steps[0].is_docs_only
    assert history.steps[0].measures["exact"].difference == 10
    assert any("documentation only" in warning for warning in history.warnings)
