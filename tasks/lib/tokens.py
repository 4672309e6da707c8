"""Text to tokens, the way code is written: identifiers whole and in their parts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

TOKENIZER_VERSION = 1
"""Raise it with every change that gives other tokens: cached counts are kept under it."""

LONGEST_WORD = 64
"""Longer runs are data (hashes, encoded bytes), not words."""

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can cannot could did do does doing don down during each few for from
    further had has have having he her here hers him his how i if in into is isn it its itself just
    let may me might more most must my no nor not now of off on once only or other our ours out
    over own same she should so some such than that the their theirs them then there these they
    this those through to too under until up upon us very was we were what when where which while
    who whom why will with within without would you your yours
    """.split()  # noqa: SIM905  a word list reads better than a hundred quoted lines
)
"""English words that say nothing about where to look, lower-cased."""

_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\d+|[^\W\d_]+")
_CAMEL = re.compile(
    r"[A-Z]{2,}s(?![a-z])"  # URLs
    r"|[A-Z]+(?![a-z])"  # HTTP in HTTPError: capitals up to the last before a small letter
    r"|[A-Z]?[a-z]+"  # Error
)


def tokenize(text: str) -> list[str]:
    """The tokens of a text in order, lower-cased.

    A word gives itself without outer underscores and, where it has several, its parts: split at
    underscores, around digits and, in ASCII, at changes of case. So `click.get_HTTPError2` gives
    click, get_httperror2, get, http, error, 2. Stop words, single characters (but for digits that
    are parts) and runs beyond 64 characters give nothing.
    """
    return [token for word in _WORD.findall(text) for token in split_word(word)]


def count_words(text: str) -> Counter[str]:
    """How often each word of a text occurs, before it is split."""
    return Counter(_WORD.findall(text))


def split_words(words: Mapping[str, int]) -> dict[str, int]:
    """How often each token occurs, given that of each word; below zero where it is a change."""
    counts: dict[str, int] = defaultdict(int)
    for word, count in words.items():
        for token in split_word(word):
            counts[token] += count
    return counts


@lru_cache(maxsize=1 << 17)
def split_word(word: str) -> tuple[str, ...]:
    """The tokens of one word: the whole first, then its parts."""
    if word.islower() and word.isascii() and word.isalpha():  # most words: nothing to split
        return (word,) if 1 < len(word) <= LONGEST_WORD and word not in STOP_WORDS else ()
    whole = word.strip("_").lower()
    if len(whole) < 2 or len(word) > LONGEST_WORD or whole in STOP_WORDS:
        return ()
    parts = tuple(_split_parts(word))
    return (whole,) if parts in {(), (whole,)} else (whole, *parts)


def _split_parts(word: str) -> Iterator[str]:
    for piece in _PIECE.findall(word):
        for part in _CAMEL.findall(piece) if piece.isascii() and piece.isalpha() else [piece]:
            token = part.lower()
            if (len(token) > 1 or token.isdecimal()) and token not in STOP_WORDS:
                yield token
