"""Progress of long work: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from coldrun.tasks.plain import counted
from coldrun.tasks.run.execute import Progress as RunProgress

PLAIN_EVERY_SECONDS = 10.0


@contextmanager
def show_progress(console: Console) -> Iterator[Callable[[RunProgress], None]]:
    """Give a callback that shows answers done, their rate, the time left and the tool failures.

    On a terminal it is one live line, gone at the end; elsewhere a line every ten seconds.
    """
    if console.is_terminal:
        with _live(console) as update:
            yield update
    else:
        yield _plain(console)


@contextmanager
def _live(console: Console) -> Iterator[Callable[[RunProgress], None]]:
    columns = (
        TextColumn("asking"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} answers"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[infra]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        started = time.monotonic()
        job = bar.add_task("asking", total=None, rate="", infra="")

        def update(progress: RunProgress) -> None:
            bar.update(
                job,
                total=progress.planned,
                completed=progress.done,
                rate=_rate(progress, started),
                infra=f"{progress.infra} infra" if progress.infra else "",
            )

        yield update


def _plain(console: Console) -> Callable[[RunProgress], None]:
    started = time.monotonic()
    last = [started]
    lock = threading.Lock()

    def update(progress: RunProgress) -> None:
        now = time.monotonic()
        with lock:
            if now - last[0] < PLAIN_EVERY_SECONDS:
                return
            last[0] = now
        executed = max(1, progress.done - progress.replayed)
        left = (progress.planned - progress.done) * (now - started) / executed
        console.print(
            f"asking: {progress.done} of {counted(progress.planned, 'answer')}, "
            f"{_rate(progress, started)}, about {left:.0f} s left, {progress.infra} infra",
            highlight=False,
        )

    return update


def _rate(progress: RunProgress, started: float) -> str:
    executed = progress.done - progress.replayed
    return f"{executed / max(1e-9, time.monotonic() - started):.1f}/s"
