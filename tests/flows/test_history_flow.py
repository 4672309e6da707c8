"""Histories and nights as Prefect flows, on the session's server."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from coldrun.flows.history import run_history
from coldrun.flows.nights import NightFailedError, crash_automation, nightly
from coldrun.flows.prefect_server import Server
from coldrun.tasks.history.night import NIGHTS, hold_night
from coldrun.tasks.lib.watch import Watch, watching
from tests.history.small import SmallHistory


@pytest.fixture
def small(tmp_path: Path) -> SmallHistory:
    """A product without commits, and its evaluation."""
    return SmallHistory(tmp_path / "lab")


@pytest.mark.prefect
def test_flow_measures_points_and_stops_between_them(
    small: SmallHistory, used_server: Server
) -> None:
    """A stage per point; told to stop, the history ends after the run in flight and continues."""
    for number in range(3):
        small.add(f"commit {number}", range(8 + 6 * number))
    small.freeze()
    request = small.request("backfill")
    watch = Watch()
    watch.on_event = lambda event: event.number < 2 or watch.stop()
    with watching(watch):
        stopped = run_history(request)
    assert (stopped.status, stopped.exit_code) == ("interrupted", 130)
    assert stopped.counts.points == 1
    with watching(Watch()):
        history = run_history(request)
    assert (history.status, history.run_id) == ("finished", stopped.run_id)
    assert history.counts.points == 3
    assert [step.up_tasks for step in history.steps] == [
        [f"t{n:02}" for n in range(8, 14)],
        [f"t{n:02}" for n in range(14, 20)],
    ]


@pytest.mark.prefect
def test_nights_run_as_flow_and_one_at_a_time(small: SmallHistory, used_server: Server) -> None:
    """A wrong configuration is told and does not stop the others; a held warehouse waits."""
    small.add("start", range(8))
    small.freeze()
    missing = small.config.with_name("missing.toml")

    def night() -> list[tuple[str, str, int]]:
        with watching(Watch()) as watch:
            with suppress(NightFailedError):
                paths = [str(missing), str(small.config)]
                nightly(paths, str(small.warehouse), str(small.scratch))
            found = watch.results[NIGHTS]
        return [(item.name, item.state, item.exit_code) for item in found]

    with hold_night(small.warehouse) as is_mine:
        assert is_mine
        assert night() == []
    assert night() == [("missing", "error", 2), ("small", "measured", 0)]
    assert night() == [("missing", "error", 2), ("small", "nothing_new", 0)]


def test_automation_waits_for_any_end_of_a_run() -> None:
    """A run that ended in good order is not taken for a dead one."""
    trigger = crash_automation().trigger
    assert trigger.after == {"prefect.flow-run.heartbeat"}
    assert {"prefect.flow-run.heartbeat", "prefect.flow-run.Completed"} <= trigger.expect
    assert trigger.within.total_seconds() == 90
