"""Progress of long work: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.text import Text

from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.report.console import PeopleConsole
from coldrun.tasks.run.execute import Progress

PLAIN_EVERY_SECONDS = 10.0
REFRESHES_PER_SECOND = 8
SHORTEST_BAR, LONGEST_BAR = 8, 40
"""Columns of the bar; it is left out where the shortest does not fit."""

DELETE_ROWS = Segment("\x1b[9M", None, [(ControlType.ERASE_IN_LINE, 9)])
"""From the cursor on; erasing all below would, in tmux, push it into what was scrolled out."""
RETURN = Segment("\r", None, [(ControlType.CARRIAGE_RETURN,)])


@dataclass(slots=True)
class Work:
    """What is known of the work: its phase, since when, and the answers since it began to ask.

    One thread draws it while others change it, so each reader reads a field once.
    """

    phase: str = "starting"
    since: float = field(default_factory=time.monotonic)
    progress: Progress | None = None
    before: int = 0

    def begin(self, phase: str) -> None:
        self.phase, self.since, self.progress = phase, time.monotonic(), None

    def update(self, progress: Progress) -> None:
        if self.progress is None:
            # answers of an earlier part of the run, and replayed ones, say nothing of the speed
            self.before = progress.done - 1
            self.since = time.monotonic()
        is_over = progress.done >= progress.planned
        self.progress, self.phase = progress, "judging" if is_over else "asking"

    @property
    def rate(self) -> float:
        """Answers a second in this phase."""
        progress = self.progress
        done = 0 if progress is None else progress.done - self.before
        return done / max(1e-3, time.monotonic() - self.since)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this rate; None before there is one."""
        progress, rate = self.progress, self.rate
        if progress is None or rate <= 0:
            return None
        return (progress.planned - progress.done) / rate


class Display:
    """Shows how far long work has come.

    On a terminal it is one live line, drawn again several times a second by a thread of Rich's, and
    gone at the end; elsewhere a line every ten seconds.
    """

    def __init__(self, console: PeopleConsole) -> None:
        self._console = console
        self._work = Work()
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._live: Live | None = None
        if console.is_live:
            self._live = Live(
                _LiveLine(self._work),
                console=console,
                transient=True,
                refresh_per_second=REFRESHES_PER_SECOND,
                # what others print to a stream that is this terminal goes above the line
                redirect_stdout=sys.stdout.isatty(),
                redirect_stderr=sys.stderr.isatty(),
            )
            self._live.start(refresh=True)

    def phase(self, name: str) -> None:
        """Say what begins: mining, checking out, starting, judging."""
        self._work.begin(name)
        if self._live:
            self._live.refresh()

    def note(self, line: str) -> None:
        """Say something that matters only while it lasts."""
        if self._live:
            self.phase(line)
        else:
            self._console.print(line, soft_wrap=True, style="dim")

    def update(self, progress: Progress) -> None:
        """Say how many answers there are."""
        with self._lock:
            self._work.update(progress)
            now = time.monotonic()
            if self._live or now - self._last < PLAIN_EVERY_SECONDS:
                return
            self._last = now
        self._console.print(
            f"asking: {progress.done} of {counted(progress.planned, 'answer')}, "
            f"{self._work.rate:.1f}/s, about {self._work.seconds_left or 0:.0f} s left, "
            f"{counted(progress.infra, 'tool failure')}",
            soft_wrap=True,
        )

    def close(self) -> None:
        """Take the line away; nothing is shown after that."""
        if self._live:
            self._live.stop()


@contextmanager
def show_progress(console: PeopleConsole) -> Iterator[Display]:
    """Show the phase, the answers done, their rate, the time left and the tool failures."""
    display = Display(console)
    try:
        yield display
    finally:
        display.close()


@dataclass(frozen=True, slots=True)
class _LiveLine:
    work: Work

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        # The cursor waits where the line begins: the ^C that a terminal echoes there needs no
        # second row, and where a window that gets narrower breaks the line, the cursor stays in
        # the first row of it, so that all of them are deleted.
        yield DELETE_ROWS
        yield progress_line(self.work, options.max_width, is_ascii=options.ascii_only)
        yield RETURN


def progress_line(work: Work, width: int, *, is_ascii: bool = False) -> Text:
    """What is known of the work, in one line of at most `width` columns.

    Where there is no room for everything, the rate goes first, then the time left, the bar, the
    failures.
    """
    progress, phase, left, rate = work.progress, work.phase, work.seconds_left, work.rate
    line = Text(no_wrap=True, overflow="ellipsis", end="")
    if progress is None or phase == "judging":
        seconds = time.monotonic() - work.since
        clock = f" {seconds:.0f} s" if seconds >= 1 else ""
        line.append(phase, style="bold")
        line.truncate(max(0, width - len(clock)), overflow="ellipsis")
        line.append(clock, style="dim")
        line.truncate(width)
        return line
    failures = counted(progress.infra, "tool failure") if progress.infra else ""
    clock = "" if left is None else f"{_clock(left)} left"
    kept, bar = _fitting(
        [f"{progress.done} of {progress.planned}", failures],
        [clock, f"{rate:.1f}/s"],
        room=width - len(phase),
    )
    line.append(phase, style="bold")
    if bar:
        done, open_ = ("#", "-") if is_ascii else ("━", "─")
        full = bar * progress.done // max(1, progress.planned)
        line.append(" ")
        line.append(done * full, style="green").append(open_ * (bar - full), style="dim")
    line.append(" " if kept else "").append((" | " if is_ascii else " · ").join(kept))
    line.truncate(width)
    return line


def _fitting(before: list[str], after: list[str], *, room: int) -> tuple[list[str], int]:
    # The bar matters less than the parts `before` it, and more than those `after` it.
    kept: list[str] = []
    bar = 0
    for part in [*filter(None, before), None, *filter(None, after)]:
        columns = SHORTEST_BAR if part is None else len(part)
        between = len(" · " if part and kept else " ")
        if between + columns > room:
            break
        room -= between + columns
        if part is None:
            bar = columns
        else:
            kept.append(part)
    return kept, min(LONGEST_BAR, bar + room) if bar else 0


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole // 60 % 60:02d} h"
    return f"{whole // 60}:{whole % 60:02d}"
