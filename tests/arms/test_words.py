"""The words of a query worth searching for."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.arms.command_words import query_terms, terms_regex


def test_query_terms_identifiers_come_before_plain_words() -> None:
    """Code first in the order of the query, then the long plain words."""
    query = "Fix a crash in get_default when `nargs` is set and Context.invoke() forwards options"
    assert query_terms(query, 6) == (
        "get_default",
        "nargs",
        "Context",
        "invoke",
        "forwards",
        "options",
    )


def test_query_terms_recognises_the_shapes_of_code() -> None:
    """Camel case, capitals, digits, paths, scopes, calls and a leading underscore are code."""
    query = "words HTTPError camelCase NULL utf8 src/click/core.py std::vector main( _private"
    assert set(query_terms(query, 12)[:-1]) == {
        "HTTPError",
        "camelCase",
        "NULL",
        "utf8",
        "src",
        "click",
        "core",
        "std",
        "vector",
        "main",
        "_private",
    }
    assert query_terms(query, 12)[-1] == "words"


def test_query_terms_abbreviations_versions_and_repeats_are_left_out() -> None:
    """Neither `e.g.` nor 8.1.0 is a name, and a word counts once whatever its case."""
    assert query_terms("Release 8.1.0, e.g. the release of RELEASE 12345", 9) == ("RELEASE",)


def test_query_terms_only_stop_words_gives_nothing_and_a_pattern_that_never_matches() -> None:
    """Without terms nothing may match; an empty pattern would match everything."""
    terms = query_terms("what is it that we do", 5)
    assert terms == ()
    assert re.search(terms_regex(terms), "any text\nat all") is None


@given(st.text(max_size=200), st.integers(0, 10))
def test_query_terms_any_text_gives_terms_of_the_text(query: str, limit: int) -> None:
    """Terms are substrings of the query, within the limit, and the pattern finds each."""
    terms = query_terms(query, limit)
    assert len(terms) <= limit
    assert len({term.lower() for term in terms}) == len(terms)
    for term in terms:
        assert term in query
        assert re.fullmatch(terms_regex(terms), term)
