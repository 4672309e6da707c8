"""Tables on a terminal: as wide as there is room for, and records where there is too little."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

WIDEST = 1000
"""Columns of a terminal on which nothing needs to break."""

LEAST_TEXT = 12
"""Columns that a cell of prose keeps when it is cut."""


def print_table(
    console: Console,
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text_columns: int = 2,
    prose: Collection[int] = (),
    styles: Sequence[str] = (),
) -> None:
    """Print a table without frames, in the first of these forms that fits.

    As it is; with headers on two lines; with `prose` cut short; with cells broken between words; a
    record for each row. No name and no number is ever cut in two.

    Args:
        console: Where it goes.
        headers: One for each column.
        rows: The cells of each row.
        text_columns: How many of the first columns are text; the others are numbers.
        prose: Places of columns that may be cut short, such as subjects of commits.
        styles: The style of each row, where rows have one.
    """
    cells = [list(row) for row in rows]
    broken = ["\n".join(header.rsplit(" ", 1)) for header in headers]
    plain = _table(headers, cells, text_columns, styles)
    candidates = [plain, _table(broken, cells, text_columns, styles)]
    excess = _width(console, candidates[1]) - console.width
    cut = _table(broken, cells, text_columns, styles)
    for place in prose:
        natural = max((cell_len(row[place]) for row in cells), default=0)
        cut.columns[place].width = max(min(natural, LEAST_TEXT), natural - max(0, excess))
        cut.columns[place].overflow = "ellipsis"
    candidates.append(cut)
    wrapped = _table(broken, cells, text_columns, styles)
    for place, column in enumerate(wrapped.columns):
        column.no_wrap = False
        texts = [*broken[place].splitlines(), *(row[place] for row in cells)]
        column.width = max((cell_len(word) for text in texts for word in text.split()), default=0)
    candidates.append(wrapped)
    for table in candidates:
        if _width(console, table) <= console.width:
            console.print(table)
            return
    _print_records(console, headers, cells, styles)


def _table(
    headers: Sequence[str], rows: list[list[str]], text_columns: int, styles: Sequence[str]
) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for number, header in enumerate(headers):
        table.add_column(
            Text(header),
            justify="left" if number < text_columns else "right",
            no_wrap=True,
            overflow="fold",
        )
    for number, cells in enumerate(rows):
        style = styles[number] if styles else None
        table.add_row(*(Text(cell) for cell in cells), style=style)
    return table


def _width(console: Console, table: Table) -> int:
    return Measurement.get(console, console.options.update(width=WIDEST), table).maximum


def _print_records(
    console: Console, headers: Sequence[str], rows: list[list[str]], styles: Sequence[str]
) -> None:
    for number, (name, *cells) in enumerate(rows):
        style = styles[number] if styles else ""
        console.print(Text(name, style=style or "bold"), soft_wrap=True)
        for header, cell in zip(headers[1:], cells, strict=True):
            if cell:
                console.print(Text(f"  {header}: {cell}", style=style), soft_wrap=True)
