"""Work that ends when a person wants it to, with or without Prefect.

Prefect's own handling of signals is not used: a flow that waits for its task runs ignored SIGTERM
for 30 s. The work runs in a thread of its own, and the main thread only waits for it or for a
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
from concurrent.futures import Future, wait
from typing import Final, NoReturn, TypeVar

from coldrun.tasks.lib.watch import Watch

Value = TypeVar("Value")

GRACE_SECONDS: Final = 3.5
FAREWELL_SECONDS: Final = 0.8
POLL_SECONDS: Final = 0.1
INTERRUPTED: Final = 130


left_behind: list[str] = []
"""Work that was left to itself: its threads must not hold up the end of the program."""


class Interrupted(KeyboardInterrupt):
    """A person asked the work to stop; what had landed is with the watch."""


def _call(function: Callable[[], Value], context: contextvars.Context) -> Future[Value]:
    """Call a function in a thread of its own."""
    called: Future[Value] = Future()

    def run() -> None:
        try:
            called.set_result(function())
        except BaseException as failure:  # noqa: BLE001 - raised again in the waiting thread
            called.set_exception(failure)

    # a daemon, so that work which is left behind cannot hold the program up
    threading.Thread(target=context.run, args=(run,), name="work", daemon=True).start()
    return called


def _has_ended(called: Future[Value]) -> bool:
    """Whether a call has ended, by now or a tenth of a second later."""
    return bool(wait([called], POLL_SECONDS).done)


def call_interruptibly(
    function: Callable[[], Value],
    *,
    watch: Watch,
    on_poll: Callable[[], bool] = lambda: False,
    on_stopped: Callable[[], None] = lambda: None,
    context: contextvars.Context | None = None,
) -> Value | None:
    """Call a function, and turn Ctrl-C and SIGTERM into a prompt and orderly end.

    After the first signal the work is stopped, once and not inside of a signal handler, and it has
    3.5 s to land what finished and to return. After that, or after a second signal, it is left
    behind, and the program is ended 0.8 s later should it still be there.

    Args:
        function: What is called, in a thread.
        watch: Makes the work end soon.
        on_poll: Called in this thread, ten times a second, while the work runs. When it gives True
            the work is left to itself and None is returned.
        on_stopped: Called once the work has ended after a signal, or its time is up.
        context: What the function runs in; left out, a copy of the present one.

    Raises:
        Interrupted: A signal came.
        Exception: What `function` raises.
    """
    with _signals() as signals:
        called = _call(function, context or contextvars.copy_context())
        while not _has_ended(called):
            if signals:
                break
            if on_poll():
                left_behind.append("work")
                return None
        if not signals:
            return called.result()
        watch.stop()
        deadline = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < deadline and len(signals) == 1:
            if _has_ended(called):
                break
        on_stopped()
        if called.done():
            with contextlib.suppress(KeyboardInterrupt):
                called.result()
        else:
            leave_in(FAREWELL_SECONDS)
        raise Interrupted


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
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield seen
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def leave_in(seconds: float) -> None:
    """End the program by force when it has not ended by then."""
    timer = threading.Timer(seconds, leave, (INTERRUPTED,))
    timer.daemon = True
    timer.start()


def leave(code: int) -> NoReturn:
    """End the program now, whatever its threads do."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
