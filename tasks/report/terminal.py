"""Documents on a terminal: tables as wide as there is room for, records where there is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from coldrun.tasks.lib.plain_text import one_line
from coldrun.tasks.report.console import PeopleConsole
from coldrun.tasks.report.document import Block, Heading, Image, Line, Paragraph, Table

WIDEST = 1000
"""Columns of a terminal on which nothing needs to break."""

LEAST_TEXT = 12
"""Columns that a cell of prose keeps when it is cut."""

_STYLES = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "good": "green",
    "doubtful": "yellow",
    "bad": "red",
}


def print_document(document: Iterable[Block], console: PeopleConsole) -> None:
    """Print a document, with an empty line where another kind of block begins."""
    before: Block | None = None
    for block in document:
        if isinstance(block, Image) or (isinstance(block, Heading) and block.is_page_only):
            continue
        if before is not None and _is_apart(before, block):
            console.print()
        if isinstance(block, Table):
            print_table(console, block)
        else:
            _print_text(block, console)
        before = block


def _is_apart(before: Block, after: Block) -> bool:
    match before, after:
        case (Line() | Paragraph(), Line()) | (Paragraph(), Table()):
            return False
        case Heading(), Line():
            return before.level == 1
    return True


def _print_text(block: Line | Paragraph | Heading, console: PeopleConsole) -> None:
    words = block.text if isinstance(block.text, str) else "".join(block.text)
    style, is_strong = "", not isinstance(block, Heading) and block.is_strong
    if isinstance(block, Line):
        number = "" if block.number is None else f"{block.number}. "
        words, style = f"{'  ' * block.depth}{number}{words}", _STYLES[block.style]
    text = Text(one_line(words), f"bold {style}".strip() if is_strong else style)
    if isinstance(block, Line) and block.is_whole:
        console.print_whole(text)
    else:
        console.print(text, soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print a table without frames, in the first of these forms that fits.

    As it is; with headers on two lines; with prose cut short; with cells broken between words; a
    record for each row. No name and no number is ever cut in two.
    """
    rows = [[one_line(cell) for cell in row] for row in table.rows]
    headers = [one_line(header) for header in table.headers]
    broken = ["\n".join(header.rsplit(" ", 1)) for header in headers]
    for drawn in (
        _draw(table, headers, rows),
        _draw(table, broken, rows),
        _draw_cut(console, table, broken, rows),
        _draw_wrapped(console, table, broken, rows),
    ):
        if _width(console, drawn) <= console.width:
            console.print(drawn)
            return
    _print_records(console, table, headers, rows)


def _draw(table: Table, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> RichTable:
    drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for number, header in enumerate(headers):
        drawn.add_column(
            Text(header),
            justify="left" if number < table.text_columns else "right",
            no_wrap=True,
            overflow="fold",
        )
    for number, cells in enumerate(rows):
        drawn.add_row(*map(Text, cells), style=_row_style(table, number))
    return drawn


def _draw_cut(
    console: Console, table: Table, headers: Sequence[str], rows: Sequence[Sequence[str]]
) -> RichTable:
    drawn = _draw(table, headers, rows)
    excess = max(0, _width(console, drawn) - console.width)
    for place in table.prose:
        natural = max((cell_len(row[place]) for row in rows), default=0)
        drawn.columns[place].width = max(min(natural, LEAST_TEXT), natural - excess)
        drawn.columns[place].overflow = "ellipsis"
    return drawn


def _draw_wrapped(
    console: Console, table: Table, headers: Sequence[str], rows: Sequence[Sequence[str]]
) -> RichTable:
    drawn = _draw(table, headers, rows)
    widths: list[int] = []
    natural: list[int] = []
    for place, header in enumerate(headers):
        texts = [*header.splitlines(), *(row[place] for row in rows)]
        natural.append(max(map(cell_len, texts), default=0))
        widths.append(max((cell_len(word) for text in texts for word in text.split()), default=1))
    for _ in range(console.width - _width(console, drawn) + sum(natural) - sum(widths)):
        widths[max(range(len(widths)), key=lambda place: natural[place] / widths[place])] += 1
    for column, width in zip(drawn.columns, widths, strict=True):
        column.width, column.no_wrap = width, False
    return drawn


def _row_style(table: Table, number: int) -> str:
    return _STYLES[table.styles[number]] if table.styles else ""


def _width(console: Console, drawn: RichTable) -> int:
    return Measurement.get(console, console.options.update(width=WIDEST), drawn).maximum


def _print_records(
    console: Console, table: Table, headers: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    for number, (name, *cells) in enumerate(rows):
        style = _row_style(table, number)
        console.print(Text(name, style or "bold"), soft_wrap=True)
        for header, cell in zip(headers[1:], cells, strict=True):
            if cell:
                console.print(Text(f"  {header}: {cell}", style), soft_wrap=True)
