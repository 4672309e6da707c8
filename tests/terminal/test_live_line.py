"""The live line on a screen whose window changes while it is there."""

from __future__ import annotations

import io

import pytest

from coldrun.tasks.report.console import PeopleConsole
from coldrun.tasks.report.progress import show_progress
from coldrun.tasks.run.execute import Progress
from tests.terminal.emulator import Screen, stale_bars


class Device(io.StringIO):
    """A terminal that is written to, and shows it."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self.screen = screen

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.screen.feed(text.replace("\n", "\r\n").encode())
        return len(text)


@pytest.mark.parametrize("narrower", [60, 40, 30])
def test_live_line_in_a_window_that_gets_narrower_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, narrower: int
) -> None:
    """The window breaks the line into rows; all of them go, and what stands above stays."""
    monkeypatch.setattr("coldrun.tasks.report.progress.REFRESHES_PER_SECOND", 1e-3)  # by hand
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen(80)
    monkeypatch.setattr("sys.stdout", Device(screen))
    console = PeopleConsole()
    console.width = 80
    with show_progress(console) as display:
        console.print("above")
        display.update(Progress(done=3, planned=200, infra=0, replayed=0))
        console.print("below that")
        assert len(screen.rows[2].rstrip()) > 60
        screen.resize(narrower)
        console.width = narrower
        console.print("and below")
        display.phase("judging")
        screen.resize(80)
        console.width = 80

    assert "judging" in [frame.bar for frame in screen.frames]
    assert stale_bars(screen) == []
    assert "".join(row.rstrip() + "/" for row in screen.rows).rstrip("/") == (
        "above/below that/and below"
    )
