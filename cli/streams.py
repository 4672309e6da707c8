"""Standard streams that outlive their reader: whatever `| head` does, a command goes on."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


STDOUT, STDERR = 1, 2

SPELLED_OUT = "coldrun-spelled-out"
_SPELLING = {
    "·": "|",
    "−": "-",
    "–": "-",
    "─": "-",
    "━": "-",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "×": "x",
    "±": "+/-",
    "…": "...",
}
"""How signs are written in ASCII; `<=` is easier to read than an escape for `≤`."""


class _Unheard(io.FileIO):
    """A stream whose reader may go away: what is written after that goes nowhere.

    A report that cannot be written for another reason is an error; progress on stderr is not
    worth one.
    """

    is_silent = False

    def write(self, data: ReadableBuffer, /) -> int:
        if not self.is_silent:
            try:
                return super().write(data)
            except OSError as error:
                self.is_silent = True  # so that the end of the program does not raise once more
                if self.fileno() == STDOUT and error.errno != errno.EPIPE:
                    from coldrun.tasks.lib.errors import StorageError

                    raise StorageError(f"cannot write the output: {error.strerror}") from None
        return memoryview(data).nbytes


def outlive_readers() -> None:
    """Let stdout and stderr fall silent when their reader goes, in place of raising.

    A run that has asked for an hour must land, and exit with its verdict's code, also when its
    report is piped into something that reads one line. A stream that was closed from the start is
    opened on nothing, so that no file of ours gets its number. A stream whose encoding lacks a
    character is given another one instead of an error. Streams that somebody else has put in
    place, as tests do, are left alone.
    """
    codecs.register_error(SPELLED_OUT, _spell_out)
    for number, name in ((STDOUT, "stdout"), (STDERR, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            _fill(number)
        elif stream is getattr(sys, f"__{name}__") and isinstance(stream, io.TextIOWrapper):
            stream.flush()
            unheard = io.TextIOWrapper(
                io.BufferedWriter(_Unheard(stream.fileno(), "w", closefd=False)),
                encoding=stream.encoding,
                errors=stream.errors if is_utf_8(stream.encoding) else SPELLED_OUT,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, unheard)


def is_utf_8(encoding: str) -> bool:
    """Whether an encoding has all characters."""
    return codecs.lookup(encoding).name == "utf-8"


def _spell_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    spelling = _SPELLING.get(error.object[error.start])
    if spelling is None:
        escaped, end = codecs.backslashreplace_errors(error)
        return str(escaped), end
    return spelling, error.start + 1


def _fill(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
