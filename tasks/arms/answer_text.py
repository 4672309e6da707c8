"""The JSON and the words in a raw answer, whatever it is wrapped in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from coldrun.tasks.lib.safe_json import BadJsonError, load_json

FENCED = re.compile(r"```[\w.+-]*\n(.*?)```", re.DOTALL)
MISSING = object()
SHORT_TEXT = 2000
"""Longer text is a result, in which words such as "timed out" may be found code."""

ERROR_FIELDS = ("error", "errors")
STATUS_FIELDS = ("message", "status", "detail", "reason", "info", "warning", "result", "text")


class UnreadableError(Exception):
    """An answer that cannot be read; the text says why."""


class MalformedError(UnreadableError, ValueError):
    """An answer that does not have the form of its kind."""


def read_json(raw: str | bytes, *, expected: str = "JSON") -> Any:
    """The value of a text that is JSON. Raises ValueError when it is not."""
    try:
        return load_json(raw, is_lenient=True)
    except BadJsonError:
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
        raise MalformedError(f"expected {expected}, found {shorten(text)}") from None


def read_protocol_line(raw: str | bytes) -> dict[str, Any]:
    """A line of the JSON Lines protocol. Raises ValueError when it is not a JSON object."""
    value = read_json(raw, expected="a JSON object")
    if not isinstance(value, dict):
        raise MalformedError(f"expected a JSON object, found {shorten(str(value))}")
    return value


def json_documents(texts: Iterable[str]) -> Iterator[Any]:
    """JSON in texts: the whole text, else its lines where each is JSON, else its fenced blocks."""
    for text in texts:
        whole = _load(text)
        if whole is not MISSING:
            yield whole
            continue
        lines = [_load(line) for line in text.splitlines() if line.strip()]
        if lines and all(isinstance(line, (dict, list)) for line in lines):
            yield lines
            continue
        for block in FENCED.findall(text):
            document = _load(block)
            if document is not MISSING:
                yield document


def _load(text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return MISSING
    try:
        return load_json(stripped, is_lenient=True)
    except BadJsonError:
        return MISSING


def field_texts(documents: Iterable[Any], names: Sequence[str]) -> Iterator[str]:
    for document in documents:
        if isinstance(document, dict):
            for name in names:
                value = document.get(name)
                if isinstance(value, (str, dict, list)) and value:
                    yield value if isinstance(value, str) else dump(value)


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def shorten(text: str, limit: int = 160) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= limit else words[:limit] + "…")
