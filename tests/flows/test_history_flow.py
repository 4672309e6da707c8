"""Histories and nights as Prefect flows, on the session's server."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from coldrun.flows.evaluate import evaluate
from coldrun.flows.history import run_history
from coldrun.flows.nights import NightFailedError, crash_automation, nightly
from coldrun.flows.prefect_server import Server
from coldrun.tasks.history.night import NIGHTS, hold_night
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.served import serving
from coldrun.tasks.lib.watch import Watch, watching
from tests.history.small import SmallHistory


@pytest.fixture
def small(tmp_path: Path) -> SmallHistory:
    """A product without commits, and its evaluation."""
    return SmallHistory(tmp_path / "lab")


def serving_small(small: SmallHistory, *more: Path) -> AbstractContextManager[None]:
    """Serve the evaluation, and others beside it."""
    configs = {path.stem: path for path in (*more, small.config)}
    return serving(configs, warehouse=small.warehouse, scratch=small.scratch)


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
    with watching(watch), serving_small(small):
        stopped = run_history(request)
    assert (stopped.status, stopped.exit_code) == ("interrupted", 130)
    assert stopped.counts.points == 1
    with watching(Watch()), serving_small(small):
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
        with watching(Watch()) as watch, serving_small(small, missing):
            with suppress(NightFailedError):
                nightly()
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


@pytest.mark.prefect
def test_flow_cannot_be_told_to_run_what_is_not_served(
    small: SmallHistory, used_server: Server, tmp_path: Path
) -> None:
    """Names come from parameters, which anybody who reaches the server chooses; paths do not."""
    small.add("start", range(8))
    small.freeze()
    with serving_small(small):
        for name in (str(small.config), "../small", "other"):
            with pytest.raises(UsageError, match="is not served here and was not run; served: sma"):
                evaluate(name)
        with pytest.raises(UsageError, match="is not a run id"):
            evaluate("small", run_id="../../x")
    with pytest.raises(UsageError, match="COLDRUN_SERVED is not set"):
        evaluate("small")


def test_deployments_load_and_take_their_parameters() -> None:
    """Every deployment of prefect.yaml names a flow, and parameters that it has."""
    root = Path(__file__).parents[2]
    deployments = yaml.safe_load((root / "prefect.yaml").read_text())["deployments"]
    assert [found["name"] for found in deployments] == [
        "evaluate",
        "backfill",
        "decompose",
        "nightly",
    ]
    for found in deployments:
        file, _, name = found["entrypoint"].partition(":")
        module = import_module("coldrun." + file.removesuffix(".py").replace("/", "."))
        getattr(module, name).validate_parameters(found["parameters"])
        served = found["work_pool"]["job_variables"]["env"]["COLDRUN_SERVED"]
        assert set(json.loads(served)) == {"evaluations", "warehouse", "scratch"}
