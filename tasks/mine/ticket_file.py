"""The tickets of a tracker, exported as CSV or JSON Lines with id, title, body and created."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.mine.lines import Line, read_input, read_lines

COLUMNS = ("id", "title", "body", "created")
_REQUIRED = ("id", "title")
_LARGEST_FIELD_CHARACTERS = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket. `created` is ISO 8601 in UTC, None when the file does not say."""

    id: str
    text: str
    created: str | None


def read_tickets(path: Path, *, ignore_case: bool = False) -> dict[str, Ticket]:
    """The tickets of a file by key (`ticket_key`), in its order.

    CSV may have CRLF line ends, as its standard says; JSON Lines may not.
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".jsonl", ".ndjson"):
        raise PanelError(
            f"{path}: tickets are read from .csv or .jsonl; rename or convert the file"
        )
    tickets: dict[str, Ticket] = {}
    places: dict[str, str] = {}
    for line in _read_csv(path) if suffix == ".csv" else read_lines(path):
        line.check_keys(COLUMNS, _REQUIRED)
        ticket = _parse_ticket(line)
        key = ticket_key(ticket.id, ignore_case=ignore_case)
        if key in tickets:
            line.fail(f"ticket {ticket.id!r} twice, first at {places[key]}; ids must differ")
        tickets[key] = ticket
        places[key] = line.place
    if not tickets:
        raise PanelError(f"{path} has no tickets; expected the columns {', '.join(COLUMNS)}")
    return tickets


def ticket_key(ticket_id: str, *, ignore_case: bool = False) -> str:
    """What makes two spellings of an id one ticket: "#12" is "12", and "ab-1" may be "AB-1"."""
    key = ticket_id.strip().lstrip("#")
    return key.upper() if ignore_case else key


def _parse_ticket(line: Line) -> Ticket:
    parts = []
    for column in ("title", "body"):
        value = line.value.get(column) or ""
        if not isinstance(value, str):
            line.fail(f"`{column}` must be a string")
        value = line.check_text(column, value)
        parts.append(value.replace("\r\n", "\n").replace("\r", "\n").strip())
    text = "\n\n".join(part for part in parts if part)
    created = line.date("created") if line.value.get("created") else None
    return Ticket(line.text("id").strip(), text, created)


def _read_csv(path: Path) -> Iterator[Line]:
    try:
        text = read_input(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise PanelError(f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8") from None
    csv.field_size_limit(_LARGEST_FIELD_CHARACTERS)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            place = f"{path}:{reader.line_num}"
            if header is None:
                header = _check_header(place, row)
            elif row:
                if len(row) != len(header):
                    raise PanelError(
                        f"{place}: {len(row)} fields where the header has {len(header)}"
                    )
                yield Line(place, dict(zip(header, row, strict=True)))
    except csv.Error as error:
        raise PanelError(f"{path}:{reader.line_num}: not valid CSV: {error}") from None


def _check_header(place: str, row: list[str]) -> list[str]:
    header = [name.strip() for name in row]
    repeated = {name for name in header if header.count(name) > 1}
    if repeated:
        raise PanelError(f"{place}: column {min(repeated)!r} twice")
    wrong = [name for name in header if name not in COLUMNS]
    missing = [name for name in _REQUIRED if name not in header]
    if wrong or missing:
        what = f"unknown column {wrong[0]!r}" if wrong else f"no column {missing[0]!r}"
        raise PanelError(
            f"{place}: {what}; the first line names the columns id, title and, where there are "
            "such, body and created, with commas between them; rename or remove the others"
        )
    return header
