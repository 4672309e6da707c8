"""Tables and sentences on terminals of any width: nothing is cut in two without a sign."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from coldrun.tasks.report.console import PeopleConsole, break_lines
from coldrun.tasks.report.tables import print_table

HEADERS = ["commit", "subject", "hit@5 of 71", "95 % interval"]
ROWS = [
    ["0123456789ab", "retriever: drop stemming, which lost names", "38", "[0.42, 0.64]"],
    ["ba9876543210", "docs: a word", "32", "[0.34, 0.57]"],
]


def printed(width: int) -> str:
    stream = io.StringIO()
    print_table(PeopleConsole(file=stream, width=width), HEADERS, ROWS, prose=[1])
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def test_table_with_room_has_a_line_for_each_row() -> None:
    """Headers, a rule, the rows."""
    lines = printed(100).splitlines()

    assert len(lines) == 4
    assert lines[2].split("  ")[0] == "0123456789ab"


def test_table_with_less_room_cuts_prose_short_and_nothing_else() -> None:
    """A subject ends in an ellipsis; commits and numbers stay whole."""
    text = printed(60)

    assert "retriever: dro" in text
    assert "…" in text
    assert "0123456789ab" in text
    assert "[0.42, 0.64]" in text


def test_table_without_room_becomes_a_record_for_each_row() -> None:
    """On a narrow terminal every value stands beside its name."""
    assert printed(30) == (
        "0123456789ab\n"
        "  subject: retriever: drop stemming, which lost names\n"
        "  hit@5 of 71: 38\n"
        "  95 % interval: [0.42, 0.64]\n"
        "ba9876543210\n"
        "  subject: docs: a word\n"
        "  hit@5 of 71: 32\n"
        "  95 % interval: [0.34, 0.57]"
    )


@pytest.mark.parametrize("width", range(10, 120, 7))
def test_table_of_any_width_has_every_commit_and_number_whole(width: int) -> None:
    """No form of the table loses or splits what identifies a row or measures it."""
    text = printed(width)

    for row in ROWS:
        assert row[0] in text
        assert row[2] in text.split()
        assert row[3] in text or {"[0.42,", "0.64]"} < {*text.split()}


@given(st.text("ab ", max_size=80), st.integers(4, 40))
def test_broken_lines_hold_all_words_in_order_and_none_is_split(text: str, width: int) -> None:
    """Only a word that is longer than a line makes a line that is too long."""
    lines = [line.plain for line in break_lines(Text(text), width)]

    assert [word for line in lines for word in line.split()] == text.split()
    for line in lines:
        assert len(line) <= width or len(line.split()) == 1
