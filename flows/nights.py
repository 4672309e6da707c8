"""The flow of a night: every evaluation whose product has something new.

Deployed with a cron schedule by `coldrun nightly serve`, or for work pools by prefect.yaml. Two
nights never run at once: the deployment holds one slot and cancels what comes while it is taken,
and a lock in the warehouse holds back whatever comes another way. A worker that is killed leaves
its run `Running` for ever, and the slot with it, so an automation marks runs without a heartbeat
as crashed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.automations import Automation
from prefect.client.schemas.objects import (
    ConcurrencyLimitConfig,
    ConcurrencyLimitStrategy,
    StateType,
)
from prefect.client.schemas.schedules import CronSchedule
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.exceptions import ObjectNotFound
from prefect.schedules import Cron

from coldrun.flows.history import run_history
from coldrun.tasks.history.night import BUSY, run_nights
from coldrun.tasks.lib.errors import ColdrunError, UsageError
from coldrun.tasks.lib.served import served
from coldrun.tasks.run.stage import fetch_stage

DEPLOYMENT: Final = "nightly"
AUTOMATION: Final = "coldrun: nights without a heartbeat have crashed"
HEARTBEAT_SECONDS: Final = 30
DEAD_AFTER_SECONDS: Final = 90
"""Three heartbeats: a run that is silent for so long is dead."""


class NightFailedError(ColdrunError):
    """At least one evaluation of the night could not be measured."""

    exit_code = 5


@flow(name="nightly", flow_run_name="nightly", persist_result=False)
def nightly(evaluations: list[str] | None = None) -> list[str]:
    """Evaluate what is new in evaluations that are served.

    Args:
        evaluations: Their names; left out, all of them.

    Returns:
        One sentence for each.

    Raises:
        NightFailedError: One of them could not be measured; the others were.
    """
    here = served()
    nights, report = run_nights(
        {name: here.path_of(name) for name in evaluations or here.evaluations},
        warehouse=here.warehouse,
        scratch=here.scratch,
        conduct=run_history,
        fetch=fetch_stage,
    )
    with suppress(Exception):  # the night has landed; what shows it may fail
        text = report.read_text(encoding="utf-8") if report is not None else BUSY
        create_markdown_artifact(key="coldrun-nightly", markdown=text)
    sentences = [night.sentence for night in nights] or [BUSY]
    if any(night.exit_code for night in nights):
        raise NightFailedError("; ".join(sentences))
    return sentences


def check_schedule(cron: str, timezone: str) -> None:
    """Refuse a schedule that Prefect would refuse, before a server is started for it.

    Raises:
        UsageError: The cron line or the time zone is not valid.
    """
    for option, value, example, fields in (
        ("--timezone", timezone, "Europe/Berlin", {"cron": "0 3 * * *", "timezone": timezone}),
        ("--cron", cron, "0 3 * * *", {"cron": cron}),
    ):
        try:
            CronSchedule(**fields)
        except ValueError:
            raise UsageError(f'{option} {value!r} is not understood; write "{example}"') from None


def serve_nights(*, cron: str, timezone: str) -> None:
    """Serve the flow on a schedule until the process is ended; `served` says what it may run."""
    ensure_automation()
    # the runs are processes of their own, and inherit this
    os.environ["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] = str(HEARTBEAT_SECONDS)
    nightly.serve(
        name=DEPLOYMENT,
        schedule=Cron(cron, timezone=timezone),
        global_limit=ConcurrencyLimitConfig(
            limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW
        ),
        limit=1,
        print_starting_message=False,
    )


def crash_automation() -> Automation:
    """Flow runs that stop to send heartbeats without having ended are marked as crashed."""
    ended = ("Completed", "Failed", "Cancelled", "Cancelling", "Crashed", "Paused", "Suspended")
    expected: set[str] = {"prefect.flow-run.heartbeat", *(f"prefect.flow-run.{s}" for s in ended)}
    return Automation(
        name=AUTOMATION,
        description="A killed worker must not hold back the nights after it.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect=expected,
            match=ResourceSpecification({"prefect.resource.id": ["prefect.flow-run.*"]}),
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=DEAD_AFTER_SECONDS),
        ),
        actions=[
            ChangeFlowRunState(state=StateType.CRASHED, message="no heartbeat: its process is gone")
        ],
    )


def ensure_automation() -> None:
    """Create the automation on the server, unless it is there."""
    try:
        existing: Any = Automation.read(name=AUTOMATION)
    except (ValueError, ObjectNotFound):
        existing = None
    if existing is None:
        crash_automation().create()
