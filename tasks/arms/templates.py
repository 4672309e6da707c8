"""Filling `{query}`, `{corpus}` and their like into command lines and tool arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from coldrun.tasks.lib.tokens import STOP_WORDS

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
MAX_TERMS = 32

COMMIT_WORDS = frozenset(
    """
    add added change changed changes done fix fixed fixes instead make makes remove removed update
    updated use used uses using
    """.split()  # noqa: SIM905  a word list reads better
)
"""Words that commit messages are full of."""


def query_terms(query: str) -> tuple[str, ...]:
    """The words of a query worth searching for, in their order, without repeats; at most 32.

    Words are identifiers or dotted names of two letters or more, without the stop words of the
    built-in searches and the usual words of commit messages.
    """
    words = (word for word in WORD.findall(query) if len(word) > 1)
    kept = (word for word in words if word.lower() not in STOP_WORDS | COMMIT_WORDS)
    return tuple(dict.fromkeys(kept))[:MAX_TERMS]


def question_values(query: str) -> dict[str, str]:
    """The placeholders that a question fills: `query`, `terms` and `terms_regex`.

    `terms_regex` matches any of the terms; a query without one is matched as it stands.
    """
    terms = query_terms(query)
    text = query.replace("\0", " ")
    return {
        "query": text,
        "terms": " ".join(terms) or text,
        "terms_regex": "|".join(re.escape(term) for term in terms) or re.escape(text.strip()),
    }


def fill_text(text: str, values: Mapping[str, str]) -> str:
    """`text` with its known placeholders filled, in one pass; other braces stay as they are."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def fill_arguments(value: Any, values: Mapping[str, str], numbers: Mapping[str, int]) -> Any:
    """Tool arguments with their placeholders filled, at any depth.

    A text that is one placeholder of `numbers` and nothing else becomes that number, since tools
    check the types of their arguments.
    """
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        if whole and whole[1] in numbers:
            return numbers[whole[1]]
        return fill_text(value, values)
    if isinstance(value, list):
        return [fill_arguments(item, values, numbers) for item in value]
    if isinstance(value, dict):
        return {key: fill_arguments(item, values, numbers) for key, item in value.items()}
    return value
