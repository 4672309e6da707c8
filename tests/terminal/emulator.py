"""A terminal for tests: runs `coldrun` in it, and shows what a person would have seen."""

from __future__ import annotations

import os
import re
import shlex
import sys
import termios
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pexpect
import pyte

from tests.evaluations import COLDRUN

PATIENCE_SECONDS = 120
HISTORY_LINES = 10_000
INHERITED = re.compile(r"COLUMNS|LINES|NO_COLOR|FORCE_COLOR|TTY_.*|TERM|COLORTERM|LC_.*|LANG.*")
"""Variables of whoever runs the tests that decide how a terminal is treated."""

PHASES = ("mining", "checking out", "starting", "asking", "judging")
BAR = re.compile(rf"({'|'.join(PHASES)})( \d.*| [━─#-].*|…?)")
"""A whole row that the live line has drawn."""
CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
REDRAWN = re.compile(rb"\r(?=\x1b\[2K)")
"""Where the row with the cursor is about to be drawn again."""
CUT_SHORT = re.compile(rb"\r(\x1b(\[2?)?)?\Z")
"""What may become `REDRAWN` with what is written next."""
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:[34]\d|9[0-7]|10[0-7])[;m]")
UNBREAKABLE = re.compile(r"[/\\]|[0-9a-f]{40}|\d{8}-\d{6}-")
"""In words that may be longer than a line: paths, digests, names of runs."""


class Frame(NamedTuple):
    """One picture of the screen, taken before the row with the cursor was drawn again."""

    rows: tuple[str, ...]
    cursor_row: int

    @property
    def bar(self) -> str:
        """The live line."""
        return self.rows[self.cursor_row]


class Screen:
    """The screen of a terminal of a given size, with what was scrolled out of it.

    Attributes:
        frames: Every picture that the live line was part of.
    """

    def __init__(self, columns: int, rows: int = 24) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=HISTORY_LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._pending = b""
        self.frames: list[Frame] = []

    def feed(self, data: bytes) -> None:
        """Show what was written."""
        *drawn, rest = REDRAWN.split(self._pending + data)
        for part in drawn:
            self._stream.feed(part)
            rows = tuple(row.rstrip() for row in self._screen.display)
            self.frames.append(Frame(rows, self._screen.cursor.y))
            self._stream.feed(b"\r")
        whole = CUT_SHORT.sub(b"", rest)
        self._stream.feed(whole)
        self._pending = rest[len(whole) :]

    def finish(self) -> None:
        """Show what could have become more."""
        self._stream.feed(self._pending)
        self._pending = b""

    def resize(self, columns: int) -> None:
        """Make it wider or narrower.

        As most terminals do, it breaks the row with the cursor where that is too long now, and
        the cursor stays at its character.
        """
        self.finish()
        cursor = self._screen.cursor
        row, at = self._screen.display[cursor.y].rstrip(), cursor.x
        self._screen.resize(columns=columns)
        parts = [row[start : start + columns] for start in range(columns, len(row), columns)]
        for part in parts:
            self._stream.feed(f"\r\n{part}".encode())
        if rows_up := len(parts) - at // columns:
            self._screen.cursor_up(rows_up)
        self._screen.cursor_to_column(at % columns + 1)

    @property
    def columns(self) -> int:
        """How wide it is."""
        return int(self._screen.columns)

    @property
    def height(self) -> int:
        """How many rows are seen at once."""
        return int(self._screen.lines)

    @property
    def has_cursor(self) -> bool:
        """Whether the cursor can be seen."""
        return not self._screen.cursor.hidden

    @property
    def rows(self) -> list[str]:
        """Every row, padded, from the first that was scrolled out to the last on the screen."""
        columns = range(self.columns)
        gone = ["".join(row[x].data for x in columns) for row in self._screen.history.top]
        return [*gone, *self._screen.display]


class Terminal:
    """A pseudo-terminal in which one command runs, before somebody who looks at its screen.

    Attributes:
        screen: What is seen.
        raw: All that the command has written.
        exit_code: None until `finish`.
        has_restored_settings: Whether echo, line editing and signals are as before.
    """

    def __init__(
        self,
        *arguments: str | Path,
        environment: Mapping[str, str],
        columns: int = 80,
        redirection: str = "",
    ) -> None:
        """Start `coldrun` with these arguments; `redirection` is the shell's, such as `2> file`."""
        self.screen = Screen(columns)
        self.raw = b""
        self.exit_code: int | None = None
        self.has_restored_settings: bool | None = None
        command = shlex.join([sys.executable, "-c", COLDRUN, *map(str, arguments)])
        with warnings.catch_warnings():
            # newer Pythons warn of any fork beside threads; this one calls exec at once
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child = pexpect.spawn(
                "sh",
                ["-c", f"exec {command} {redirection}"],
                dimensions=(self.screen.height, columns),
                env=dict(environment),
                timeout=PATIENCE_SECONDS,
            )
        self._child.logfile_read = self
        self._settings = self._terminal_settings()

    def write(self, data: bytes) -> None:
        """Take what the command has written; called by pexpect."""
        self.raw += data
        self.screen.feed(data)

    def flush(self) -> None:
        """Nothing is held back; called by pexpect."""

    def wait_for(self, pattern: str) -> None:
        """Read on until the command has written this."""
        self._child.expect(pattern.encode())

    def resize(self, columns: int) -> None:
        """Make the window wider or narrower, as its frame is dragged."""
        self.screen.resize(columns)
        self._child.setwinsize(self.screen.height, columns)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._child.sendintr()

    def finish(self) -> Terminal:
        """Read to the end, and take the exit code."""
        self._child.expect(pexpect.EOF)
        self.screen.finish()
        self.has_restored_settings = self._terminal_settings() == self._settings
        self._child.close()
        self.exit_code = self._child.exitstatus
        return self

    def _terminal_settings(self) -> list[Any]:
        return termios.tcgetattr(self._child.child_fd)

    @property
    def text(self) -> str:
        """All rows; what the terminal has broken is broken here."""
        return "\n".join(row.rstrip() for row in self.screen.rows).rstrip()

    @property
    def lines(self) -> list[str]:
        """What was printed, line by line as it was written, without what was drawn over."""
        return [
            CONTROL.sub("", line.rstrip("\r").rpartition("\r")[2])
            for line in self.raw.decode("utf-8", "replace").split("\n")
        ]

    @property
    def bars(self) -> list[str]:
        """The distinct live lines, in the order in which they were seen."""
        return list(dict.fromkeys(frame.bar for frame in self.screen.frames if frame.bar))

    @property
    def phases(self) -> set[str]:
        """What the live line said was going on."""
        return {phase for phase in PHASES for bar in self.bars if bar.startswith(phase)}


def stale_bars(screen: Screen) -> list[str]:
    """What the live line has left behind: beside itself in any picture, or at the end."""
    beside = [
        row
        for frame in screen.frames
        for number, row in enumerate(frame.rows)
        if number != frame.cursor_row and BAR.fullmatch(row)
    ]
    return beside + [row for row in map(str.rstrip, screen.rows) if BAR.fullmatch(row)]


def broken_words(terminal: Terminal) -> list[str]:
    """Lines with a word that the terminal broke: those that were written longer than a row.

    Commands to copy stand alone and whole, and a path, a digest or the name of a run may be longer
    than a row.
    """
    columns = terminal.screen.columns
    found = []
    for line in terminal.lines:
        if line.startswith("  coldrun "):
            continue
        for word in re.finditer(r"\S+", line):
            is_broken = word.start() // columns != (word.end() - 1) // columns
            if is_broken and not UNBREAKABLE.search(word[0]):
                found.append(line)
                break
    return found


def assert_is_tidy(terminal: Terminal, exit_code: int, *expected: str) -> None:
    """What holds of every command in every terminal, once it has ended."""
    assert terminal.exit_code == exit_code, terminal.text
    for text in expected:
        assert text in terminal.text
    assert "Traceback" not in terminal.text
    assert "Error" not in terminal.text
    assert stale_bars(terminal.screen) == []
    assert broken_words(terminal) == []
    assert terminal.screen.has_cursor
    assert terminal.has_restored_settings


def environment_of(lab: Any, server: Mapping[str, str], **variables: str) -> dict[str, str]:
    """The environment of a person at a terminal: a lab's folders, a server, and no more.

    Args:
        lab: Something with a `warehouse` and a `scratch` folder.
        server: The variables of the Prefect server.
        variables: Further ones.
    """
    root = Path(__file__).resolve().parents[2]
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PREFECT") and not INHERITED.fullmatch(name)
    }
    return kept | {
        "COLDRUN_WAREHOUSE": str(lab.warehouse),
        "COLDRUN_SCRATCH": str(lab.scratch),
        "PYTHONPATH": os.environ.get("PYTHONPATH") or str(root),
        "COLDRUN_STATE": str(lab.warehouse.parent / "state"),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        **server,
        **variables,
    }
