"""Damaging files: bytes that a disk, an editor or an opponent may leave in place of good ones."""

from __future__ import annotations

import json
import random
from typing import Any

SHAPES = (b"null", b"[]", b"{}", b"1", b'"x"', b"true", b"[1]", b'{"a": 1}', b"NaN", b"")
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 10**400, "", "x", "\ud83d", "a\0b", "9" * 5000, float("nan")),
    *(float("inf"), [], [None], {}, {"": {}}, [[[[]]]], ["x", 1], "2026-13-45T99:00:00"),
)


def damage(data: bytes, draw: random.Random) -> bytes:
    """Other bytes than `data`, by one of a dozen ways."""
    ways = [_truncate, _flip, _insert, _shape, _deep, _replace, _replace, _replace, _drop, _digits]
    while (found := draw.choice(ways)(data, draw)) == data:
        continue
    return found


def _truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))] if data else b"x"


def _flip(data: bytes, draw: random.Random) -> bytes:
    found = bytearray(data or b"x")
    for _ in range(draw.randint(1, 20)):
        found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found)


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    extra = draw.choice(
        (b"\xff\xfe", b"\xed\xa0\x80", b"\0", b"\xef\xbb\xbf", data[:200], b" " * 99)
    )
    return data[:at] + extra + data[at:]


def _shape(_: bytes, draw: random.Random) -> bytes:
    return draw.choice(SHAPES)


def _deep(_: bytes, draw: random.Random) -> bytes:
    return draw.choice((b"[", b'{"a":', b'[{"a":')) * 100_000


def _digits(data: bytes, draw: random.Random) -> bytes:
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return _flip(data, draw)
    at = draw.choice(places)
    return data[:at] + b"9" * draw.choice((1, 400, 5000)) + data[at:]


def _replace(data: bytes, draw: random.Random) -> bytes:
    """One value of a JSON document, or of a line of one, becomes another."""
    return _edit(data, draw, lambda _: draw.choice(VALUES))


def _drop(data: bytes, draw: random.Random) -> bytes:
    """One key or element is missing."""
    return _edit(data, draw, None)


def _edit(data: bytes, draw: random.Random, change: Any) -> bytes:
    lines = data.split(b"\n") if data.count(b"\n{") else [data]
    number = draw.randrange(len(lines))
    try:
        document = json.loads(lines[number])
    except (ValueError, RecursionError):
        return _flip(data, draw)
    places = list(_places(document))
    if not places:
        return _shape(data, draw)
    holder, key = draw.choice(places)
    if change is None:
        del holder[key]
    else:
        holder[key] = change(holder[key])
    lines[number] = json.dumps(document).encode()
    return b"\n".join(lines)


def _places(value: Any) -> Any:
    for key in (
        value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    ):
        yield value, key
        yield from _places(value[key])
