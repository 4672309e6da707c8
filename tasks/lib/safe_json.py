"""JSON that was damaged, edited or made to do harm: read within bounds, or refused.

All JSON that coldrun reads comes through here: its own files, and what tools reply.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Hashable
from typing import Any, TypeVar, cast

Record = TypeVar("Record")

MOST_BYTES = 512 * 1024**2
MOST_DEPTH = 100
MOST_DIGITS = 20
"""Of a whole number: what 64 bits hold."""

_BRACKETS = re.compile(r"[\[{]")


class BadJsonError(ValueError):
    """The bytes are not JSON that is read; the message says what is wrong with them."""


def load_json(data: bytes | str, *, is_lenient: bool = False) -> Any:
    """The value in UTF-8 JSON of at most 512 MiB and 100 levels.

    Numbers are finite and have at most 20 digits, and no text has half of a surrogate pair;
    `is_lenient` lets these pass, as tools write them.

    Raises:
        BadJsonError: It is not such JSON.
    """
    try:
        if len(data) > MOST_BYTES:
            raise BadJsonError(f"larger than {MOST_BYTES // 1024**2} MiB")
        text = data if isinstance(data, str) else data.decode("utf-8")
        hooks: dict[str, Any] = {} if is_lenient else _STRICT
        value = json.loads(text, **hooks)
        if isinstance(value, dict | list) and len(_BRACKETS.findall(text)) > MOST_DEPTH:
            _refuse_depth(value)
        if not is_lenient and (isinstance(data, str) or "\\ud" in text or "\\uD" in text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except BadJsonError:
        raise
    except RecursionError:
        raise BadJsonError(f"more than {MOST_DEPTH} levels deep") from None
    except UnicodeError:
        raise BadJsonError("text that is not UTF-8") from None
    except ValueError as error:
        raise BadJsonError(f"not JSON ({error})") from None
    return value


def load_object(data: bytes | str) -> dict[str, Any]:
    """The same, for what must be an object. Raises BadJsonError."""
    value = load_json(data)
    if not isinstance(value, dict):
        raise BadJsonError("not a JSON object")
    return value


def load_record(data: bytes | str, record: type[Record]) -> Record:
    """A record, or any type that Pydantic validates, from its JSON. Raises BadJsonError."""
    return to_record(load_json(data), record)


def to_record(values: Any, record: type[Record]) -> Record:
    """The record in JSON values. Raises BadJsonError when their shape is not the record's."""
    from pydantic import ValidationError

    try:
        return cast("Record", _adapter(cast("Hashable", record)).validate_python(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise BadJsonError(f"{place}: {first['msg'].lower()}"[:200]) from None


@functools.cache
def _adapter(record: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(record)


def _refuse_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise BadJsonError(f"more than {MOST_DEPTH} levels deep")
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS + text.startswith("-"):
        raise BadJsonError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadJsonError(f"a number that is not finite ({text[:20]})")
    return number


_STRICT = {"parse_int": _whole, "parse_float": _finite, "parse_constant": _finite}
