"""Text that is safe to show and to store, whatever tools say, and numbers with their nouns."""

from __future__ import annotations

import re
from typing import Any

from coldrun.tasks.lib.concealment import conceal

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that move the cursor, change colours or the direction of reading, and surrogates."""


def plain_text(text: str) -> str:
    """`text` as it is shown: without secrets, and with control characters written as escapes.

    Line feeds and tabs stay; lone surrogates, which no output takes, become escapes too.
    """
    return _CONTROL.sub(lambda found: _escape(found[0]), conceal(text))


def one_line(text: str) -> str:
    """`text` on one line: a quoted line break cannot pass for a line of ours."""
    return plain_text(" ".join(text.splitlines()))


def cut_text(text: str, most: int) -> str:
    """`text` in at most `most` characters; an ellipsis marks what was cut off."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: "1 task", "2 tasks"; `many` is an irregular plural."""
    return f"{number} {noun(number, one, many)}"


def noun(number: float, one: str, many: str | None = None) -> str:
    """The noun that fits a number: "task" for 1 and -1, else "tasks"."""
    return one if abs(number) == 1 else many or f"{one}s"


def times(number: int) -> str:
    """How often: "once" or "3 times"."""
    return "once" if number == 1 else f"{number} times"


def without_surrogates(value: Any) -> Any:
    """A JSON value whose texts can all be encoded: lone surrogates become `\\udcXX` escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def short_digest(digest: str) -> str:
    """A digest as people compare it: algorithm and the first 12 digits."""
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}:{value[:12]}" if value else digest[:12]
