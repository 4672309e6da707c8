"""Identifier-aware tokens."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.lib.tokens import count_words, split_words, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("click.get_HTTPError2", ["click", "get_httperror2", "get", "http", "error", "2"]),
        ("__init__", ["init"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("XMLHttpRequest", ["xmlhttprequest", "xml", "http", "request"]),
        ("getX", ["getx", "get"]),
        ("URLs", ["urls"]),
        ("src/click/core.py", ["src", "click", "core", "py"]),
        ("is_not_in", ["is_not_in"]),
        ("What is the use of a stream?", ["use", "stream"]),
        ("naïve_Über", ["naïve_über", "naïve", "über"]),
        ("日本語テキスト", ["日本語テキスト"]),
        ("x = 0; y == z", []),
        ("f" * 65 + " ok", ["ok"]),
        ("", []),
    ],
)
def test_tokenize_word_gives_whole_and_parts(text: str, tokens: list[str]) -> None:
    """Identifiers are kept and split; stop words, single characters and data give nothing."""
    assert tokenize(text) == tokens


@given(st.text(st.sampled_from("aB_3 .éX\n"), max_size=60))
def test_split_words_any_text_equals_counting_tokenize(text: str) -> None:
    """Splitting each distinct word once counts what splitting every word counts."""
    assert split_words(count_words(text)) == Counter(tokenize(text))


@given(st.text(max_size=80))
def test_tokenize_any_text_gives_lower_case_without_separators(text: str) -> None:
    """Tokens are searched as they are: no space, no upper case, nothing empty."""
    for token in tokenize(text):
        assert token
        assert token == token.lower()
        assert not any(character.isspace() for character in token)
