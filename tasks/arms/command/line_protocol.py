"""The lines of the JSON Lines protocol, and whether they come from the product under test."""

from __future__ import annotations

import hmac
import json
import math
from typing import Any, cast

from coldrun.tasks.arms.answer_text import MalformedError, read_protocol_line, shorten
from coldrun.tasks.arms.usage import read_texts
from coldrun.tasks.lib.plain_text import without_surrogates
from coldrun.tasks.lib.records import Point, SessionStart

PROTOCOL = 1

SHORTEST_COMMIT = 7
LATE = ("usage", "event")
"""The types of lines that may come after their answer."""


def encode_message(message: dict[str, Any]) -> bytes:
    """One line of the protocol."""
    return json.dumps(message).encode("ascii") + b"\n"


def decode_line(line: bytes) -> dict[str, Any]:
    """A line of the arm's. Raises MalformedError when it is not a JSON object.

    Names that are not UTF-8 come as lone surrogates, which nothing can store; the raw line, from
    which items are read, keeps them.
    """
    try:
        message = read_protocol_line(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise MalformedError(f"the line is not UTF-8: {shorten_line(line)}") from None
    except MalformedError as error:
        raise MalformedError(f"{error}; write logs to stderr") from None
    has_surrogates = b"\\ud" in line or b"\\uD" in line
    return cast("dict[str, Any]", without_surrogates(message)) if has_surrogates else message


def read_ready(message: dict[str, Any]) -> SessionStart:
    """What a `ready` line reports.

    Raises:
        MalformedError: A field has the wrong type.
    """
    texts: dict[str, Any] = {}
    for name in ("nonce", "name", "commit", "loaded_from"):
        value = message.get(name)
        if value is not None and not isinstance(value, str):
            raise MalformedError(f"`ready` has {name} = {value!r}, which is not a text")
        texts[name] = value
    indexing = message.get("indexing_seconds", 0.0)
    is_number = isinstance(indexing, (int, float)) and not isinstance(indexing, bool)
    if not is_number or not indexing < math.inf:
        raise MalformedError(f"`ready` has indexing_seconds = {indexing!r}, which is not a number")
    degraded = read_texts(message.get("degraded"))
    return SessionStart(indexing_seconds=float(indexing), degraded=degraded, **texts)


def is_late_usage(stray: bytes) -> bool:
    """Whether all that came between questions is usage or events, which may be late."""
    try:
        return all(decode_line(line).get("type") in LATE for line in stray.splitlines())
    except MalformedError:
        return False


def shorten_line(line: bytes) -> str:
    """A line for an error message."""
    return shorten(line.decode("utf-8", "replace"))


def find_mismatches(start: SessionStart, *, point: Point | None, nonce: str) -> tuple[str, ...]:
    """Why the arm is not the point's product in this session; empty when all it reported fits.

    What an arm does not report is not checked. Without a product there is no commit or place to
    compare with, and the nonce alone counts.

    Args:
        start: What the arm reported.
        point: The product that should be running.
        nonce: The secret that this start of the session was given.
    """
    found = []
    if start.nonce is not None and not hmac.compare_digest(start.nonce.encode(), nonce.encode()):
        found.append(
            f"the arm answered with the nonce {start.nonce!r}, which belongs to another session"
        )
    if point is not None:
        found += [
            text for text in (_commit_mismatch(start, point), _place_mismatch(start, point)) if text
        ]
    return tuple(found)


def _commit_mismatch(start: SessionStart, point: Point) -> str | None:
    if start.commit is None:
        return None
    reported = start.commit.strip().lower()
    if len(reported) >= SHORTEST_COMMIT and point.commit.startswith(reported):
        return None
    return f"the arm reports commit {start.commit!r}, but the point is {point.commit}"


def _place_mismatch(start: SessionStart, point: Point) -> str | None:
    """Links are followed on both sides, so a link out of the checkout does not count as inside."""
    if start.loaded_from is None:
        return None
    directory = point.directory.resolve()
    place = (directory / start.loaded_from).resolve()
    if not place.exists():
        return f"the arm reports that it was loaded from {start.loaded_from}, which does not exist"
    if place.is_relative_to(directory):
        return None
    where = "an installed copy" if "site-packages" in place.parts else "another folder"
    return (
        f"the arm was loaded from {place}, {where}, not from the checkout {directory} of "
        f"{point.commit}; install the product inside its checkout in `setup`, and report the "
        "product's own file, not the adapter's"
    )
