"""Running a flow so that it ends when a person wants it to, and says nothing in between.

Prefect's own handling of signals is not used: a flow that waits for its task runs ignored SIGTERM
for 30 s. The flow runs in a thread of its own, and the main thread only waits for it or for a
signal, so that coldrun can always leave.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from prefect.context import FlowRunContext
from prefect.events.clients import NullEventsClient
from prefect.events.worker import EventsWorker
from prefect.exceptions import CancelledRun
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

if TYPE_CHECKING:
    from uuid import UUID

    from coldrun.flows.prefect_server import ServerHandle
    from coldrun.tasks.lib.watch import Watch

Value = TypeVar("Value")

GRACE_SECONDS: Final = 3.5
FAREWELL_SECONDS: Final = 0.8
PRINTING_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.1
INTERRUPTED: Final = 130


class FlowInterrupted(KeyboardInterrupt):
    """A person asked the flow to stop; what had landed is with the watch."""


class _Call(Generic[Value]):
    """A call in a thread of its own, with the context of the thread that made it."""

    def __init__(self, function: Callable[[], Value]) -> None:
        self._function = function
        self._context = contextvars.copy_context()
        self._value: Value | None = None
        self._failure: BaseException | None = None
        self.ended = threading.Event()
        # a daemon, so that a flow which is left behind cannot hold the program up
        threading.Thread(
            target=self._context.run, args=(self._run,), name="flow", daemon=True
        ).start()

    def _run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as failure:  # noqa: BLE001 - raised again in the waiting thread
            self._failure = failure
        finally:
            self.ended.set()

    def result(self) -> Value:
        """What the function returned or raised, once it has ended."""
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]

    def flow_run_id(self) -> UUID | None:
        """The flow run that is under way, None before and after."""
        run_context = self._context.get(FlowRunContext.__var__)
        return run_context.flow_run.id if run_context and run_context.flow_run else None


def run_flow(
    server: ServerHandle,
    call: Callable[[], Value],
    *,
    watch: Watch,
    on_poll: Callable[[], None] = lambda: None,
) -> Value:
    """Call a flow, and turn Ctrl-C and SIGTERM into a prompt and orderly end.

    After the first signal the flow is stopped, once and not inside of a signal handler, and it
    has 3.5 s to land what finished and to return. After that, or after a second signal, it is left
    behind: `FlowInterrupted` is raised, and the program is ended 0.8 s later should it still be
    there, because threads of the flow would otherwise hold it up.

    Args:
        server: The server that `use_server` gave.
        call: Calls the flow and returns its value.
        watch: Makes the flow end soon.
        on_poll: Called in this thread, ten times a second, while the flow runs.

    Returns:
        What `call` returns.

    Raises:
        FlowInterrupted: A signal came.
        Exception: What `call` raises.
    """
    with _quiet_flows(server), _signals() as signals:
        running = _Call(call)
        while not running.ended.wait(POLL_SECONDS):
            on_poll()
            if signals:
                break
        if not signals:
            return running.result()
        flow_run_id = running.flow_run_id()
        watch.stop()
        deadline = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < deadline and len(signals) == 1:
            if running.ended.wait(POLL_SECONDS):
                break
        if server.kind != "own" and flow_run_id is not None:
            _mark_cancelled(flow_run_id)
        if not running.ended.is_set():
            _leave_in(FAREWELL_SECONDS)
        else:
            if not _are_events_sent():
                _leave_in(PRINTING_SECONDS)
            with contextlib.suppress(CancelledRun, KeyboardInterrupt):
                running.result()
        raise FlowInterrupted


@contextlib.contextmanager
def _quiet_flows(server: ServerHandle) -> Iterator[None]:
    """No heartbeat, whose thread holds up the end of a flow by a second, and no events unseen."""
    if server.kind == "own":
        EventsWorker.set_client_override(NullEventsClient)
    try:
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
            yield
    finally:
        if server.kind == "own":
            EventsWorker.set_client_override(None)


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in place of acting on them; elsewhere than in the main thread
    there is nothing to collect."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    earlier = {
        number: signal.signal(number, lambda number, _: seen.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield seen
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _mark_cancelled(flow_run_id: UUID) -> None:
    """Tell a server that people look at; it gets four tenths of a second."""

    def tell() -> None:
        from prefect.client.orchestration import get_client
        from prefect.states import Cancelled

        # the server may be what hangs, and the run is over anyway
        with contextlib.suppress(Exception), get_client(sync_client=True) as client:
            client.set_flow_run_state(flow_run_id, Cancelled(message="interrupted"), force=True)

    context = contextvars.copy_context()
    teller = threading.Thread(target=context.run, args=(tell,), daemon=True)
    teller.start()
    teller.join(0.4)


def _are_events_sent() -> bool:
    """Whether what a browser is to show has gone out; Prefect would wait for it without end."""
    outcome = EventsWorker.drain_all(timeout=0.4)
    return not isinstance(outcome, tuple) or not outcome[1]


def _leave_in(seconds: float) -> None:
    """End the program by force when it has not ended by then."""

    def leave() -> None:
        time.sleep(seconds)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(INTERRUPTED)

    threading.Thread(target=leave, name="leave", daemon=True).start()
