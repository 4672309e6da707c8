"""Calling a flow so that it ends promptly, and says nothing in between."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

import httpx
from prefect.context import FlowRunContext
from prefect.events.worker import EventsWorker
from prefect.exceptions import CancelledRun, PrefectException
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from coldrun.flows.interruptible import call_interruptibly, leave_in
from coldrun.tasks.lib.plain_text import one_line
from coldrun.tasks.lib.watch import Watch

Value = TypeVar("Value")

PRINTING_SECONDS = 2.0


class OrchestrationLost(Exception):  # noqa: N818 - the run goes on without it
    """The server ended, hangs, or cannot store what it is told."""


def call_flow(
    function: Callable[[], Value], *, watch: Watch, on_poll: Callable[[], bool] = lambda: False
) -> Value | None:
    """Call a flow as `call_interruptibly` calls a function; a signal marks its run as cancelled.

    Raises:
        OrchestrationLost: The server failed; what had been answered is kept.
    """
    context = contextvars.copy_context()

    def call() -> Value:
        try:
            return function()
        except CancelledRun:
            raise KeyboardInterrupt from None
        except (httpx.HTTPError, PrefectException, OSError) as error:
            raise OrchestrationLost(one_line(f"{type(error).__name__}: {error}")[:200]) from None

    def mark() -> None:
        run = context.get(FlowRunContext.__var__)
        if run is not None and run.flow_run is not None:
            _mark_cancelled(run.flow_run.id)
        # what a browser is to show must go out; Prefect would wait for it without end
        outcome = EventsWorker.drain_all(timeout=0.4)
        if isinstance(outcome, tuple) and outcome[1]:
            leave_in(PRINTING_SECONDS)

    # the thread of heartbeats would hold up the end of a flow by a second
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        return call_interruptibly(
            call, watch=watch, on_poll=on_poll, on_stopped=mark, context=context
        )


def _mark_cancelled(flow_run_id: object) -> None:
    """Tell the server, which gets four tenths of a second."""

    def tell() -> None:
        from prefect.client.orchestration import get_client
        from prefect.states import Cancelled

        # the server may be what hangs, and the run is over anyway
        with contextlib.suppress(Exception), get_client(sync_client=True) as client:
            client.set_flow_run_state(flow_run_id, Cancelled(message="interrupted"), force=True)  # type: ignore[arg-type]

    context = contextvars.copy_context()
    teller = threading.Thread(target=context.run, args=(tell,), daemon=True)
    teller.start()
    teller.join(0.4)
