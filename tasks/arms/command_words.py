"""The words of a query that are worth searching for, for tools that take words or a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from coldrun.tasks.arms.stop_words import STOP_WORDS

MINIMUM_LENGTH = 3

_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_CHAIN = re.compile(r"\w+(?:(?:[./]|::)\w+)*")
_WORD = re.compile(r"\w+")
_LOOKS_LIKE_CODE = re.compile(r"[^\W_]_+[^\W_]|[a-z][A-Z]|[A-Z]{2}|[A-Za-z]\d|\d[A-Za-z]|^_")


def query_terms(query: str, limit: int) -> tuple[str, ...]:
    """The most telling words of a query, at most `limit`, as they are written there.

    Identifiers come first, in the order of the query: words inside backticks, parts of dotted
    names and paths, called functions, and words with an underscore, a digit or capitals inside.
    Plain words follow, the long ones first (long words are rare ones), then by position. Left
    out are stop words, numbers, words below three characters and repeats in any case.
    """
    code: list[str] = []
    plain: list[str] = []
    for word, is_code in _classify(query):
        (code if is_code else plain).append(word)
    ranked = [*code, *sorted(plain, key=len, reverse=True)]
    first_spelling: dict[str, str] = {}
    for word in ranked:
        first_spelling.setdefault(word.lower(), word)
    return tuple(first_spelling.values())[:limit]


def terms_regex(terms: Sequence[str]) -> str:
    """A pattern that matches any of the terms literally; one that matches nothing for none."""
    return "|".join(re.escape(term) for term in terms) if terms else r"[^\s\S]"


def _classify(query: str) -> Iterator[tuple[str, bool]]:
    """Every usable word of the query with whether it looks like code."""
    quoted = {word for span in _CODE_SPAN.finditer(query) for word in _WORD.findall(span.group(1))}
    for chain in _CHAIN.finditer(query):
        words = _WORD.findall(chain.group())
        is_called = query[chain.end() : chain.end() + 1] == "("
        is_chain = len(words) > 1 and not _is_prose(words)
        for word in words:
            if len(word) < MINIMUM_LENGTH or word.isdecimal() or word.lower() in STOP_WORDS:
                continue
            looks = _LOOKS_LIKE_CODE.search(word) is not None
            yield word, looks or is_chain or is_called or word in quoted


def _is_prose(words: Sequence[str]) -> bool:
    """Whether a chain is an abbreviation or a number: `e.g`, `i.e`, `8.1.0`."""
    return all(len(word) < MINIMUM_LENGTH or word.isdecimal() for word in words)
