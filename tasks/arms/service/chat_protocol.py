"""What a chat-completions endpoint says: the text, why it stopped, and what it used. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coldrun.tasks.arms.answer_text import MalformedError, dump, read_protocol_line, shorten
from coldrun.tasks.arms.usage import LARGEST_COUNT
from coldrun.tasks.lib.records import Attempt

CUT_OFF = "length"
"""The stop reason of an answer that ran into its limit of tokens."""

USUAL_STOPS = (None, "stop", "end_turn", "eos")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer of a model. `model` is the name that the server gave."""

    content: str
    stop_reason: str | None
    usage: Attempt


def read_completion(raw: str) -> Completion:
    """The completion in a response body.

    Raises:
        MalformedError: The body is not a completion, or it is an error with a success status.
    """
    body = read_protocol_line(raw)
    if body.get("error"):
        raise MalformedError(f"the endpoint reports an error: {shorten(dump(body['error']))}")
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        raise MalformedError(f"expected `choices` with a `message`, found {shorten(raw)}")
    stop = first.get("finish_reason")
    return Completion(
        content=_read_content(message.get("content")),
        stop_reason=stop if isinstance(stop, str) else None,
        usage=read_completion_usage(body),
    )


def read_completion_usage(body: Mapping[str, Any]) -> Attempt:
    """The tokens of one call by kind, None where the server does not say.

    Servers count cached tokens in `prompt_tokens`; here they are kinds of their own, because they
    are billed at prices of their own. Reasoning tokens are part of the output, as they are billed.
    A server whose cached tokens exceed `prompt_tokens` counts them apart, so nothing is taken off.
    """
    model = body.get("model")
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        usage = {}
    details = usage.get("prompt_tokens_details")
    if not isinstance(details, Mapping):
        details = {}
    prompt = _count(usage, "prompt_tokens", "input_tokens")
    read = _count(details, "cached_tokens")
    if read is None:
        read = _count(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens")
    write = _count(details, "cache_write_tokens", "cache_creation_tokens")
    if write is None:
        write = _count(usage, "cache_creation_input_tokens")
    cached = (read or 0) + (write or 0)
    if prompt is not None and cached <= prompt:
        prompt -= cached
    return Attempt(
        model=model if isinstance(model, str) and model else None,
        input_tokens=prompt,
        output_tokens=_count(usage, "completion_tokens", "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=write,
    )


def _read_content(content: Any) -> str:
    """The text of a message: as it is, or the text parts of a list put together."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    raise MalformedError(f"expected a text as `content`, found {shorten(dump(content))}")


def _count(values: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = values.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT:
            return value
    return None
