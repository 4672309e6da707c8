"""From tries to a reply: retries that were declared, each kept as an attempt with what it spent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coldrun.tasks.lib.records import Attempt, ComponentEvent, Reply

LARGEST_COUNT = 2**53
"""Larger counts are none, and no table takes them."""

TOKEN_FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an arm says one model was used for; counts are None where it does not say."""

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One try at a question. `is_final` forbids another one (the session was ended)."""

    status: Literal["answered", "abstained", "infra"]
    raw: str | None = None
    reason: str | None = None
    stderr: str | None = None
    seconds: float = 0.0
    stop_reason: str | None = None
    degraded: tuple[str, ...] = ()
    trajectory: str | None = None
    usage: tuple[Usage, ...] = ()
    events: tuple[ComponentEvent, ...] = ()
    is_final: bool = False


def ask_with_retries(try_once: Callable[[], Tried], *, retries: int) -> Reply:
    """Try until an answer comes or the declared retries are used up.

    The reply is that of the last try. Its seconds are those of all tries, because that is how
    long the answer took; its attempts are all tries, so that failures stay visible.
    """
    attempts: list[Attempt] = []
    seconds = 0.0
    for number in range(1, retries + 2):
        tried = try_once()
        seconds += tried.seconds
        attempts += _attempts(number, tried)
        if tried.status != "infra" or tried.is_final:
            break
    return Reply(
        status=tried.status,
        raw=tried.raw,
        reason=tried.reason,
        stderr=tried.stderr,
        seconds=seconds,
        stop_reason=tried.stop_reason,
        degraded=tried.degraded,
        trajectory=tried.trajectory,
        attempts=tuple(attempts),
        events=tried.events,
    )


def _attempts(number: int, tried: Tried) -> list[Attempt]:
    """The attempt of one try; one per model where several were used, the time with the first."""
    return [
        make_attempt(
            number,
            usage,
            status="infra" if tried.status == "infra" else "ok",
            reason=tried.reason,
            seconds=0.0 if index else tried.seconds,
        )
        for index, usage in enumerate(tried.usage or (Usage(),))
    ]


def make_attempt(
    number: int,
    usage: Usage,
    *,
    status: Literal["ok", "infra"],
    reason: str | None,
    seconds: float,
) -> Attempt:
    """One try, with what one model was used for in it."""
    return Attempt(
        number=number,
        status=status,
        reason=reason,
        seconds=seconds,
        model=usage.model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )


def read_usage(value: Any) -> tuple[Usage, ...]:
    """What a `usage` line or field says: one object, or a list with one per model.

    Raises:
        TypeError: It is neither.
        ValueError: A count is no natural number.
    """
    if value is None:
        return ()
    entries = value if isinstance(value, list) else [value]
    return tuple(_read_entry(entry) for entry in entries)


def _read_entry(entry: Any) -> Usage:
    if not isinstance(entry, Mapping):
        raise TypeError(f"usage must be an object, found {entry!r}")
    model = entry.get("model")
    if model is not None and not isinstance(model, str):
        raise ValueError(f"usage has a model that is no text: {model!r}")
    counts: dict[str, int | None] = {}
    for name in TOKEN_FIELDS:
        count = entry.get(name)
        if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
            raise ValueError(f"usage has {name} = {count!r}, which is no whole number")
        if count is not None and count < 0:
            raise ValueError(f"usage has {name} = {count}, which is below 0")
        if count is not None and count > LARGEST_COUNT:
            raise ValueError(f"usage has {name} = {count:.3g}, more than anything can have used")
        counts[name] = count
    return Usage(model=model, **counts)


def add_usage(parts: Iterable[Usage]) -> tuple[Usage, ...]:
    """Increments added up per model, in the order in which models first came."""
    totals: dict[str | None, dict[str, int | None]] = {}
    for part in parts:
        total = totals.setdefault(part.model, dict.fromkeys(TOKEN_FIELDS))
        for name in TOKEN_FIELDS:
            count: int | None = getattr(part, name)
            if count is not None:
                total[name] = (total[name] or 0) + count
    return tuple(Usage(model=model, **counts) for model, counts in totals.items())


def read_event(value: Mapping[str, Any], position: int) -> ComponentEvent:
    """A component event that an arm reported. Raises TypeError when it has no name."""
    name = value.get("name")
    if not isinstance(name, str):
        raise TypeError("an event has no `name`")
    digest = value.get("arguments_digest")
    if not isinstance(digest, str):
        digest = digest_arguments(value["arguments"]) if "arguments" in value else None
    sizes: dict[str, int | None] = {}
    for field in ("returned_bytes", "returned_tokens"):
        size = value.get(field)
        is_count = isinstance(size, int) and not isinstance(size, bool) and size <= LARGEST_COUNT
        sizes[field] = size if is_count else None
    return ComponentEvent(name=name, position=position, arguments_digest=digest, **sizes)


def digest_arguments(arguments: Any) -> str:
    """SHA-256 of arguments as canonical JSON."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_texts(value: Any) -> tuple[str, ...]:
    """A list of texts, such as `degraded`; a single text counts as one.

    Raises:
        ValueError: It is neither.
    """
    if value is None:
        return ()
    texts: Sequence[Any] = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"expected a list of texts, found {value!r}")
    return tuple(texts)
