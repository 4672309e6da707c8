"""Whoever watches work in this process: shows its progress, stops it, takes its results.

Flows and stages take and return plain values. What a person at this machine needs besides goes
through the watch of the calling context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Watch:
    """One watcher.

    Attributes:
        on_phase: Told what begins, in a word or two.
        on_progress: Told of each answer.
        on_event: Told of each point of a history.
        run_id: The run that is being asked.
        is_stopping: The work was told to stop.
        results: What ended in this process, by run id or by kind of flow.
    """

    on_phase: Callable[[str], None] = lambda _: None
    on_progress: Callable[[Any], None] = lambda _: None
    on_event: Callable[[Any], None] = lambda _: None
    run_id: str | None = None
    is_stopping: bool = False
    results: dict[str, Any] = field(default_factory=dict)
    _stop_run: Callable[[], None] = lambda: None

    def begin(self, run_id: str, stop: Callable[[], None]) -> None:
        """Follow a run that is about to ask; `stop` stops it."""
        self.run_id, self._stop_run = run_id, stop
        self.on_phase("starting")
        if self.is_stopping:
            stop()

    def stop(self) -> None:
        """Take no further questions; what finished is landed."""
        self.is_stopping = True
        self._stop_run()


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def current_watch() -> Watch:
    """The watch of this context; one that shows nothing where nobody watches, as in a worker."""
    watch = _watch.get()
    if watch is None:
        watch = Watch()
        _watch.set(watch)
    return watch


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """Watch what is called inside, in threads that copy this context too."""
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)
