"""What is said when coldrun itself is at fault: one line, and a file with the rest."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path

import click

from coldrun.tasks.lib.plain_text import cut_text, one_line

UNEXPECTED = 70


def report_unexpected(error: BaseException) -> int:
    """Write an unexpected error to a file, say so in one line, and give the exit code."""
    what = cut_text(one_line(f"{type(error).__name__}: {error}"), 200)
    file = _write(error)
    where = f"the details are in {file}" if file else "its details could not be written"
    click.echo(
        f"coldrun: unexpected error ({what}); {where}. Please report it with that file; what had "
        "landed before is kept",
        err=True,
    )
    return UNEXPECTED


def _write(error: BaseException) -> Path | None:
    from coldrun.flows.prefect_server import state_folder

    now = dt.datetime.now(dt.UTC)
    text = "".join(traceback.format_exception(error))
    head = f"{now.isoformat()} {platform.platform()} Python {sys.version}\n{sys.argv}\n\n"
    for folder in (state_folder().root / "errors", Path(tempfile.gettempdir())):
        file = folder / f"coldrun-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
                out.write((head + text).encode("utf-8", "backslashreplace").decode())
        except OSError:
            continue
        return file
    return None
