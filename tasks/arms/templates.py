"""Filling `{query}`, `{corpus}` and their like into command lines and tool arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
MAX_TERMS = 32

COMMON_WORDS = frozenset(
    """
    a about add added after all also an and any are as at be because been before but by can change
    changed changes do does don done fix fixed fixes for from had has have if in instead into is it
    its make makes more no not now of on only or our out over remove removed so some such than that
    the their them then there these this those to up update updated use used uses using was we were
    what when where which while will with without you your
    """.split()  # noqa: SIM905 (a list of a hundred quoted words is harder to read)
)
"""English words that find every file."""


def query_terms(query: str) -> tuple[str, ...]:
    """The words of a query worth searching for, in their order, without repeats; at most 32.

    Words are identifiers or dotted names of two letters or more, common English words left out.
    """
    words = (word for word in WORD.findall(query) if len(word) > 1)
    kept = (word for word in words if word.lower() not in COMMON_WORDS)
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
