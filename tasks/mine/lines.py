"""Reading JSON Lines that a person or another program wrote, with an error for each bad line."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from coldrun.tasks.lib.errors import PanelError


@dataclass(frozen=True, slots=True)
class Line:
    """One object of a file, with the place that errors name."""

    place: str
    value: dict[str, Any]

    def fail(self, message: str) -> NoReturn:
        """Raise the PanelError of this line."""
        raise PanelError(f"{self.place}: {message}")

    def check_keys(self, known: tuple[str, ...], required: tuple[str, ...]) -> None:
        """Refuse keys that are unknown or missing."""
        for key in required:
            if key not in self.value:
                self.fail(f"`{key}` is missing; a line needs {', '.join(required)}")
        for key in self.value:
            if key not in known:
                self.fail(f"unknown key `{key}`; known keys: {', '.join(known)}")

    def text(self, key: str) -> str:
        """The value of a key that has to be a string with something in it."""
        value = self.value[key]
        if not isinstance(value, str) or not value.strip():
            self.fail(f"`{key}` must be a string that is not empty, found {_show(value)}")
        return self.check_text(key, value)

    def check_text(self, key: str, value: str) -> str:
        """Refuse text that no panel can hold or no tool can be given."""
        if "\0" in value:
            self.fail(f"`{key}` has a NUL character: {_show(value)}")
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.fail(f"`{key}` has half of a surrogate pair: {_show(value)}")
        return value

    def date(self, key: str) -> str | None:
        """The value of a date or time key as ISO 8601 in UTC, None when it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return None
        try:
            return normalise_date(value)
        except (OverflowError, TypeError, ValueError):
            self.fail(f"`{key}` must be an ISO 8601 date such as 2026-08-01, found {_show(value)}")


def normalise_date(value: str) -> str:
    """An ISO 8601 date or time as a time in UTC; one without a zone is UTC already.

    Raises:
        ValueError: It is not such a date.
        OverflowError: In UTC it is before the year 1 or after 9999.
    """
    moment = dt.datetime.fromisoformat(value)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_lines(path: Path) -> Iterator[Line]:
    """The objects of a JSON Lines file, blank lines left out."""
    for number, raw_line in enumerate(read_input(path).split(b"\n"), start=1):
        place = f"{path}:{number}"
        if raw_line.endswith(b"\r"):
            raise PanelError(
                f"{place}: the file has CRLF line ends; convert it to LF (`dos2unix {path.name}`)"
            )
        if raw_line.strip():
            yield Line(place, _parse_object(place, raw_line))


def read_input(path: Path) -> bytes:
    """The bytes of an input file without a byte order mark."""
    try:
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        raise PanelError(f"no file at {path}; check the path in the configuration") from None
    except OSError as error:
        raise PanelError(f"cannot read {path}: {error.strerror}") from None


def _parse_object(place: str, raw_line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw_line.decode("utf-8"), object_pairs_hook=_unique_keys)
    except UnicodeDecodeError:
        raise PanelError(f"{place}: not UTF-8; save the file as UTF-8") from None
    except (RecursionError, ValueError) as error:
        raise PanelError(f"{place}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise PanelError(f"{place}: expected a JSON object, found {_show(value)}")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise ValueError(f"key {key!r} twice")
        value[key] = item
    return value


def _show(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
