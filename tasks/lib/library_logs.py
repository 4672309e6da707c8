"""What libraries log: into the log of the session that a thread serves, and never to a terminal.

A library quotes what it could not read, and that may be a sealed question.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path

OWN = ("coldrun", "prefect")
_here = threading.local()


class SessionLogHandler(logging.Handler):
    """Writes the records of a thread to its session's log; others are dropped."""

    def emit(self, record: logging.LogRecord) -> None:
        """Append one line."""
        place: Path | None = getattr(_here, "place", None)
        if place is not None and not record.name.startswith(OWN):
            with contextlib.suppress(Exception), place.open("a", encoding="utf-8") as log:
                log.write(f"{record.name}: {record.getMessage()}\n")


def quiet_libraries() -> None:
    """Keep what libraries log off the terminal, from here on."""
    root = logging.getLogger()
    if not any(isinstance(handler, SessionLogHandler) for handler in root.handlers):
        root.addHandler(SessionLogHandler(level=logging.WARNING))
    logging.lastResort = None


def log_to(place: Path | None) -> None:
    """Lead what libraries log in this thread to a session's log."""
    quiet_libraries()
    _here.place = place
