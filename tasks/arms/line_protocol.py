"""The lines of the JSON Lines protocol between coldrun and a session."""

from __future__ import annotations

import json
import math
from typing import Any, cast

from coldrun.tasks.arms.answer_text import read_protocol_line
from coldrun.tasks.arms.attempts import read_texts
from coldrun.tasks.lib.plain_text import without_surrogates
from coldrun.tasks.lib.records import SessionStart

PROTOCOL = 1


class ProtocolError(Exception):
    """A line that the protocol does not allow here; the text says why."""


def encode_message(message: dict[str, Any]) -> bytes:
    """One line of the protocol."""
    return json.dumps(message).encode("ascii") + b"\n"


def decode_line(line: bytes) -> dict[str, Any]:
    """A line of the arm's. Raises ProtocolError when it is no JSON object.

    Names that are not UTF-8 come as lone surrogates, which nothing can store; the raw line, from
    which items are read, keeps them.
    """
    try:
        message = read_protocol_line(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ProtocolError(f"the line is not UTF-8: {shorten_line(line)}") from None
    except ValueError as error:
        raise ProtocolError(f"{error}; write logs to stderr") from None
    has_surrogates = b"\\ud" in line or b"\\uD" in line
    return cast("dict[str, Any]", without_surrogates(message)) if has_surrogates else message


def read_ready(message: dict[str, Any], *, seconds: float) -> SessionStart:
    """What a `ready` line reports, after a start that took `seconds`, indexing included.

    Raises:
        ProtocolError: A field has the wrong type.
    """
    texts: dict[str, str | None] = {}
    for name in ("nonce", "name", "commit", "loaded_from"):
        value = message.get(name)
        if value is not None and not isinstance(value, str):
            raise ProtocolError(f"`ready` has {name} = {value!r}, which is no text")
        texts[name] = value
    indexing = message.get("indexing_seconds", 0.0)
    is_number = isinstance(indexing, (int, float)) and not isinstance(indexing, bool)
    if not is_number or not indexing < math.inf:
        raise ProtocolError(f"`ready` has indexing_seconds = {indexing!r}, which is no number")
    indexing = min(max(float(indexing), 0.0), seconds)
    try:
        degraded = read_texts(message.get("degraded"))
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    return SessionStart(
        startup_seconds=seconds - indexing,
        indexing_seconds=indexing,
        degraded=degraded,
        **texts,
    )


def is_late_usage(stray: bytes) -> bool:
    """Whether all that came between questions is usage or events, which may be late."""
    for line in stray.splitlines():
        try:
            message = decode_line(line)
        except ProtocolError:
            return False
        if message.get("type") not in ("usage", "event"):
            return False
    return True


def shorten_line(line: bytes) -> str:
    """A line for an error message."""
    text = line.decode("utf-8", "replace")
    return repr(text if len(text) <= 160 else text[:160] + "…")
