"""Every kind of block in both renderings: quoted text stays text, and nothing is cut in two."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len
from rich.text import Text

from coldrun.tasks.lib.plain_text import one_line
from coldrun.tasks.report.console import PeopleConsole, break_lines
from coldrun.tasks.report.document import Block, Code, Heading, Image, Line, Paragraph, Table
from coldrun.tasks.report.markdown import code, inert, to_markdown
from coldrun.tasks.report.terminal import print_document

FORGE = MarkdownIt("commonmark").enable(["table", "strikethrough"])
"""What GitHub and GitLab have in common."""

TABLE = Table(
    headers=["commit", "subject", "hit@5 of 71", "95 % interval"],
    rows=[
        ["0123456789ab", "retriever: drop stemming, which lost names", "38", "[0.42, 0.64]"],
        ["ba9876543210", "docs: a word", "32", "[0.34, 0.57]"],
    ],
    prose=[1],
)
DOCUMENT: list[Block] = [
    Paragraph("executed 4", is_strong=True),
    Heading("a page", is_page_only=True),
    Line("verdict measured", "good"),
    Line("because it ran", depth=1),
    Line(("panel ", Code("sha256:0123"))),
    Image("the score", "chart.svg"),
    Heading("Points", level=2),
    Paragraph("all of them:"),
    TABLE,
    Line("answer:"),
    Line(("+ ", Code("a_b*.py")), depth=1, number=1),
    Line("warning: few", "doubtful", is_strong=True),
]

hostile = st.text(
    st.sampled_from("ab1 \t\n\r.)(_*~`#<>&|[]:!\\-+=$@/\"'x\x1b\u202e\u2028") | st.characters(),
    max_size=24,
)
quoted = hostile.filter(lambda text: text.strip() != "")
parts = st.tuples(hostile, quoted.map(Code), hostile)
blocks = st.lists(
    st.builds(Line, hostile | parts, depth=st.just(0), is_strong=st.booleans())
    | st.builds(Paragraph, hostile.map(lambda text: f"a{text}"), st.booleans())
    | st.builds(Heading, hostile, st.integers(1, 3))
    | st.lists(hostile, min_size=2, max_size=2).map(lambda row: Table(headers=row, rows=[row])),
    min_size=1,
    max_size=4,
)


def leaves(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from token.children or [token]


def shown(markdown: str) -> str:
    found = (token for token in leaves(FORGE.parse(markdown)))
    return "".join(token.content for token in found if token.type in ("text", "code_inline"))


def kinds(markdown: str) -> Counter[str]:
    found = Counter(token.type.removesuffix("_open") for token in leaves(FORGE.parse(markdown)))
    return Counter({kind: found[kind] for kind in found if not kind.endswith("_close")})


def printed(document: list[Block], width: int) -> str:
    stream = io.StringIO()
    print_document(document, PeopleConsole(file=stream, width=width))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def test_markdown_renders_every_kind_of_block() -> None:
    """Blocks stand apart, the lines of a list together."""
    assert to_markdown(DOCUMENT) == (
        "**executed 4**\n\n# a page\n\n- verdict measured\n  - because it ran\n"
        "- panel `sha256:0123`\n\n![the score](<chart.svg>)\n\n## Points\n\nall of them:\n\n"
        "| commit | subject | hit@5 of 71 | 95 % interval |\n| --- | --- | ---: | ---: |\n"
        "| 0123456789ab | retriever: drop stemming, which lost names | 38 | [0.42, 0.64] |\n"
        "| ba9876543210 | docs: a word | 32 | [0.34, 0.57] |\n\n"
        "- answer:\n  1. \\+ `a_b*.py`\n- **warning: few**"
    )


def test_terminal_renders_every_kind_of_block_but_what_is_for_pages() -> None:
    """The same words in the same order; the title and the picture are for pages."""
    text = printed(DOCUMENT, 100)

    assert text.startswith(
        "executed 4\nverdict measured\n  because it ran\npanel sha256:0123\n\nPoints\n\n"
        "all of them:\ncommit "
    )
    assert text.endswith("\n\nanswer:\n  1. + a_b*.py\nwarning: few")


@pytest.mark.parametrize("width", [*range(10, 120, 7), 200])
def test_terminal_of_any_width_has_every_word_name_and_number_whole(width: int) -> None:
    """No form of a table or a sentence loses or splits what it says."""
    text = printed(DOCUMENT, width)

    for row in TABLE.rows:
        assert row[0] in text
        assert row[2] in text.split()
        assert row[3] in text or {"[0.42,", "0.64]"} < {*text.split()}
    assert "all of them:" in " ".join(text.split())
    assert "sha256:0123" in text


def test_table_with_less_room_cuts_prose_short_and_at_last_becomes_records() -> None:
    """A subject ends in an ellipsis; then every value stands beside its name."""
    text = printed([TABLE], 60)
    assert "retriever: dro" in text
    assert "…" in text
    assert printed([TABLE], 30).startswith(
        "0123456789ab\n"
        "  subject: retriever: drop stemming, which lost names\n"
        "  hit@5 of 71: 38\n"
        "  95 % interval: [0.42, 0.64]\n"
        "ba9876543210\n"
    )


@given(st.text("abü世 ", max_size=80), st.integers(4, 40))
def test_broken_lines_hold_all_words_in_order_and_none_is_split(text: str, width: int) -> None:
    """Only a word that is longer than a line makes a line that is too long."""
    lines = [line.plain for line in break_lines(Text(text), width)]

    assert [word for line in lines for word in line.split()] == text.split()
    for line in lines:
        assert cell_len(line) <= width or len(line.split()) == 1


@given(blocks)
def test_hostile_text_changes_neither_the_structure_nor_itself(document: list[Block]) -> None:
    """A page has the headings, lists, tables and code of its document, and shows all its text."""
    page = to_markdown(document)
    found = kinds(page)

    for kind, name in (("heading", Heading), ("table", Table), ("list_item", Line)):
        assert found[kind] == sum(isinstance(block, name) for block in document)
    assert found["td"] == found["th"] == 2 * found["table"]
    words = [part for block in document if isinstance(block, Line) for part in block.text]
    assert found["code_inline"] == sum(isinstance(part, Code) for part in words)
    assert not {*found} & {"em", "link", "image", "html_inline", "html_block", "s", "hr", "fence"}
    texts = [
        text
        for block in document
        for text in (
            [*block.headers, *block.rows[0]]
            if isinstance(block, Table)
            else [block.text if isinstance(block.text, str) else "".join(block.text)]
        )
    ]
    assert "".join(shown(page).split()) == "".join("".join(map(one_line, texts)).split())


@given(hostile)
@example("src/click/__init__.py")
@example("** measured nothing **")
@example("* a")
@example("1. a")
@example("# a #")
@example("[x]: y")
@example("[ ] done")
@example("<b>&copy;</b> ![a](b) [c][d] `e` ~~f~~ \\* \\")
@example("---")
def test_inert_text_is_shown_as_it_is(text: str) -> None:
    """No markup comes of a query, a path or what a tool says; nothing of it is lost."""
    line = f"- {inert(text)}"

    assert {*kinds(line)} <= {"bullet_list", "list_item", "paragraph", "text", "inline"}
    assert "".join(shown(line).split()) == "".join(one_line(text).split())


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("0.465 (33) [0.35, 0.58] below_noise a_b +50.0 -1", 0),
        ("a step is `changed` only where it clears the floor", 1),
        ("the gold was produced with 'x' (`panel.gold_from`), a part of this arm", 1),
        ("see `coldrun why RUN TASK ARM`, or `coldrun backfill a_b*.toml --commits A..B`", 2),
    ],
)
def test_plain_words_and_own_commands_are_as_they_are_written(text: str, spans: int) -> None:
    """Only what others said is escaped."""
    assert inert(text) == text
    assert kinds(f"- {text}")["code_inline"] == spans


@pytest.mark.parametrize(
    "text", ["``coldrun x`", "`coldrun x``", "`coldrun <b>` `rm`", "\\`coldrun x`", "`changed <i>`"]
)
def test_what_looks_like_an_own_command_is_text_or_code(text: str) -> None:
    """Backticks around it pair with nothing else."""
    line = f"- {inert(text)}"

    assert not {*kinds(line)} & {"html_inline", "em", "strong"}
    assert shown(line).replace("`", "") == text.replace("`", "")


@given(quoted)
def test_code_span_holds_any_text(text: str) -> None:
    """Backticks in a path end no span."""
    spans = [token for token in leaves(FORGE.parse(f"- {code(text)}")) if token.content]

    assert [span.type for span in spans] == ["code_inline"]
