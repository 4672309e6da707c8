"""Markdown as a forge renders it: what is quoted stays text, and tables stay tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from coldrun.tasks.lib.plain_text import one_line
from coldrun.tasks.report.markdown import bullets, code, inert, table_lines

FORGE = MarkdownIt("commonmark").enable(["table", "strikethrough"])
"""What GitHub and GitLab have in common."""

hostile = st.text(
    st.sampled_from("ab1 \t\n\r.)(_*~`#<>&|[]:!\\-+=$@/\"'x\x1b\u202e\u2028") | st.characters(),
    max_size=24,
)


def leaves(tokens: list[Token]) -> Iterator[Token]:
    """All tokens, the inline ones in place of those that hold them."""
    for token in tokens:
        yield from token.children or [token]


def shown(markdown: str) -> str:
    """The text that a reader sees."""
    return "".join(
        token.content
        for token in leaves(FORGE.parse(markdown))
        if token.type in ("text", "code_inline")
    )


def kinds(markdown: str) -> set[str]:
    """The kinds of elements that come of a text, but for text itself."""
    return {token.type for token in leaves(FORGE.parse(markdown))} - {"text", "inline"}


LIST = {
    f"{name}_{end}"
    for name in ("bullet_list", "list_item", "paragraph")
    for end in ("open", "close")
}


@given(hostile)
@example("src/click/__init__.py")
@example("** measured nothing **")
@example("* a")
@example("1. a")
@example("# a")
@example("[x]: y")
@example("[ ] done")
@example("<b>&copy;</b> ![a](b) [c][d] `e` ~~f~~ \\* \\")
@example("---")
def test_inert_text_is_shown_as_it_is(text: str) -> None:
    """No markup comes of a query, a path or what a tool says; nothing of it is lost."""
    (line,) = bullets([text])

    assert kinds(line) <= LIST
    assert "".join(shown(line).split()) == "".join(one_line(text).split())


@given(st.lists(hostile, min_size=2, max_size=4))
def test_table_row_has_its_cells_whatever_is_in_them(cells: list[str]) -> None:
    """A pipe in a path opens no column."""
    text = "\n".join(table_lines(["h"] * len(cells), [cells]))
    found = [token for token in FORGE.parse(text) if token.type == "td_open"]

    assert len(found) == len(cells)
    assert not kinds(text) & {"code_inline", "em_open", "strong_open", "link_open", "html_inline"}


@given(hostile.filter(lambda text: text.strip() != ""))
def test_code_span_holds_any_text(text: str) -> None:
    """Backticks in a path end no span."""
    spans = [token for token in leaves(FORGE.parse(f"- {code(text)}")) if token.content]

    assert [span.type for span in spans] == ["code_inline"]


@pytest.mark.parametrize("text", ["0.465 (33) [0.35, 0.58]", "below_noise", "a_b", "+50.0", "-1"])
def test_plain_words_and_numbers_are_left_alone(text: str) -> None:
    """Whoever reads the source reads no backslashes."""
    assert inert(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a step is `changed` only where it clears the floor",
        "the gold was produced with 'x' (`panel.gold_from`), a part of this arm",
        "see `coldrun why RUN TASK ARM`, or `coldrun backfill a_b*.toml --commits A..B`",
    ],
)
def test_own_commands_and_settings_are_code_as_they_are_written(text: str) -> None:
    """Only what others said is escaped."""
    assert inert(text) == text
    assert "code_inline" in kinds(f"- {text}")


@pytest.mark.parametrize(
    "text", ["``coldrun x`", "`coldrun x``", "`coldrun <b>` `rm`", "\\`coldrun x`", "`changed <i>`"]
)
def test_what_looks_like_an_own_command_is_text_or_code(text: str) -> None:
    """Backticks around it pair with nothing else."""
    (line,) = bullets([text])

    assert kinds(line) <= LIST | {"code_inline"}
    assert shown(line).replace("`", "") == text.replace("`", "")
