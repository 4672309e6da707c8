"""A report as a document: headings, sentences and tables in order, for any renderer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from coldrun.tasks.lib.plain_text import cut_text

MOST_CHARACTERS = 4000
"""Of a line; a longer one is quoted from elsewhere."""

Style = Literal["", "dim", "good", "doubtful", "bad"]
RowStyle: TypeAlias = Style | Literal["bold"]


class Code(str):
    """A part of a text that is quoted exactly: a hash, a path."""

    __slots__ = ()


Words: TypeAlias = "str | Sequence[str]"
"""A text, or its parts where some of them are `Code`."""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a list; line breaks in it become spaces.

    `is_whole`: a row of a drawing or a command, which is never broken between words.
    """

    text: Words
    style: Style = ""
    is_strong: bool = False
    depth: int = 0
    number: int | None = None
    is_whole: bool = False

    def __post_init__(self) -> None:
        """Cut what would fill the page: the JSON has it whole."""
        if isinstance(self.text, str) and len(self.text) > MOST_CHARACTERS:
            more = f" ({len(self.text):,} characters in all)"
            object.__setattr__(self, "text", cut_text(self.text, MOST_CHARACTERS) + more)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence that stands by itself, often above a table."""

    text: str
    is_strong: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; with `is_page_only` a terminal, where the command stands above, leaves it out."""

    text: str
    level: int = 1
    is_page_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. The first `text_columns` are text, the others are numbers; columns whose places are
    in `prose`, such as subjects of commits, may be cut short."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 2
    prose: Collection[int] = ()
    styles: Sequence[RowStyle] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a file beside the page; a terminal leaves it out."""

    text: str
    path: str


Block: TypeAlias = Line | Paragraph | Heading | Table | Image
Document: TypeAlias = Sequence[Block]


def table_of(records: Iterable[Mapping[str, str]], *, text_columns: int = 2) -> Table:
    """A table of at least one record; the keys of the first are the headers."""
    found = list(records)
    rows = [list(record.values()) for record in found]
    return Table(headers=list(found[0]), rows=rows, text_columns=text_columns)


def lines(texts: Iterable[str], style: Style = "", *, depth: int = 0) -> Iterator[Line]:
    """Sentences of one style and level."""
    return (Line(text, style, depth=depth) for text in texts)


def warning_lines(warnings: Iterable[str]) -> Iterator[Line]:
    """Warnings, each as a line."""
    return lines((f"warning: {warning}" for warning in warnings), "doubtful")


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
