"""What an arm reports of its own work: tokens by model, uses of components, notes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coldrun.tasks.arms.answer_text import MalformedError
from coldrun.tasks.lib.records import Attempt, ComponentEvent

LARGEST_COUNT = 2**53
"""Counts above this are rejected: no table holds them exactly."""

TOKEN_FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def read_usage(value: Any) -> tuple[Attempt, ...]:
    """What a `usage` line or field says: one object, or a list with one per model.

    Raises:
        MalformedError: It is neither, or a count is not a whole number from 0 on.
    """
    if value is None:
        return ()
    entries = value if isinstance(value, list) else [value]
    return tuple(_read_entry(entry) for entry in entries)


def _read_entry(entry: Any) -> Attempt:
    if not isinstance(entry, Mapping):
        raise MalformedError(f"usage must be an object, found {entry!r}")
    model = entry.get("model")
    if model is not None and not isinstance(model, str):
        raise MalformedError(f"usage has a model that is not a text: {model!r}")
    counts: dict[str, Any] = {}
    for name in TOKEN_FIELDS:
        count = entry.get(name)
        if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
            raise MalformedError(f"usage has {name} = {count!r}, which is not a whole number")
        if count is not None and count < 0:
            raise MalformedError(f"usage has {name} = {count}, which is below 0")
        if count is not None and count > LARGEST_COUNT:
            raise MalformedError(
                f"usage has {name} = {count:.3g}, more than anything can have used"
            )
        counts[name] = count
    return Attempt(model=model, **counts)


def add_usage(parts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Increments added up per model, in the order in which models first came."""
    totals: dict[str | None, dict[str, Any]] = {}
    for part in parts:
        total = totals.setdefault(part.model, dict.fromkeys(TOKEN_FIELDS))
        for name in TOKEN_FIELDS:
            count: int | None = getattr(part, name)
            if count is not None:
                total[name] = (total[name] or 0) + count
    return tuple(Attempt(model=model, **counts) for model, counts in totals.items())


def read_event(value: Mapping[str, Any], position: int) -> ComponentEvent:
    """A component event that an arm reported. Raises MalformedError when it has no name."""
    name = value.get("name")
    if not isinstance(name, str):
        raise MalformedError("an event has no `name`")
    digest = value.get("arguments_digest")
    if not isinstance(digest, str):
        digest = digest_arguments(value["arguments"]) if "arguments" in value else None
    sizes: dict[str, int | None] = {}
    for field in ("returned_bytes", "returned_tokens"):
        size = value.get(field)
        is_count = isinstance(size, int) and not isinstance(size, bool) and size <= LARGEST_COUNT
        sizes[field] = size if is_count else None
    return ComponentEvent(name=name, position=position, arguments_digest=digest, **sizes)


def describe_call(name: str, arguments: Any, returned: str | None) -> ComponentEvent:
    """The event of a call that coldrun made itself, the first of its question."""
    return ComponentEvent(
        name=name,
        position=0,
        arguments_digest=digest_arguments(arguments),
        returned_bytes=None if returned is None else len(returned.encode("utf-8")),
    )


def digest_arguments(arguments: Any) -> str:
    """SHA-256 of arguments as canonical JSON."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_texts(value: Any) -> tuple[str, ...]:
    """A list of texts, such as `degraded`; a single text counts as one.

    Raises:
        MalformedError: It is neither.
    """
    if value is None:
        return ()
    texts: Sequence[Any] = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise MalformedError(f"expected a list of texts, found {value!r}")
    return tuple(texts)
