"""Rows of tables made from records, and records from rows: a column is a field, written once.

A field of a record is a column of its name. `Annotated` types say what differs: a `Column` with
another name or storage. A nested record is flattened; a tuple of records is a table of its own and
left out.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")
Storage = Literal["text", "large_text", "moment", "bool", "int", "int32", "float", "texts", "map"]


@dataclass(frozen=True, slots=True)
class Column:
    """How a field is stored, where its name and type do not say it."""

    name: str | None = None
    storage: Storage | None = None


Int32 = Annotated[int, Column(storage="int32")]
LargeText = Annotated[str, Column(storage="large_text")]
Moment = Annotated[str, Column(storage="moment")]
"""ISO 8601 in UTC, a timestamp in tables."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    column: str
    storage: Storage
    nested: type | None = None


def storages(record: type) -> dict[str, Storage]:
    """The columns of a record, in its order, with how each is stored."""
    found: dict[str, Storage] = {}
    for field in _fields(record):
        found |= {field.column: field.storage} if field.nested is None else storages(field.nested)
    return found


def to_row(record: Any) -> dict[str, Any]:
    """The row of a record. A nested record that is None gives empty lists and nulls."""
    row: dict[str, Any] = {}
    for field in _fields(type(record)):
        value = getattr(record, field.name)
        if field.nested is None:
            row[field.column] = _to_cell(value, field.storage)
        elif value is None:
            row |= {
                name: [] if storage == "texts" else None
                for name, storage in storages(field.nested).items()
            }
        else:
            row |= to_row(value)
    return row


def from_row(record: type[Record], row: Mapping[str, Any], **values: Any) -> Record:
    """The record in a row; `values` are those of its fields that are tables of their own.

    A column that is missing or null has its field's default, if it has one: older rows lack it.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(record)}  # type: ignore[arg-type]
    for field in _fields(record):
        if field.nested is not None:
            values.setdefault(field.name, from_row(field.nested, row))
            continue
        value = row.get(field.column)
        if value is not None or defaults[field.name] is dataclasses.MISSING:
            values[field.name] = _from_cell(value, field.storage)
    return record(**values)


def _fields(record: type) -> tuple[_Field, ...]:
    return _fields_of(record)


@functools.cache
def _fields_of(record: Hashable) -> tuple[_Field, ...]:
    found = []
    for name, hint in get_type_hints(record, include_extras=True).items():
        column = Column()
        while get_origin(hint) in (Annotated, Union, UnionType):
            if get_origin(hint) is Annotated:
                column = next((x for x in hint.__metadata__ if isinstance(x, Column)), column)
                hint = get_args(hint)[0]  # noqa: PLW2901
            else:
                hint = next(part for part in get_args(hint) if part is not type(None))  # noqa: PLW2901
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            found.append(_Field(name, name, "text", nested=hint))
            continue
        inner = get_args(hint)
        if get_origin(hint) is tuple and dataclasses.is_dataclass(inner[0]):
            continue
        storage = column.storage or _storage_of(hint)
        found.append(_Field(name, column.name or name, storage))
    return tuple(found)


def _storage_of(hint: Any) -> Storage:
    plain: dict[Any, Storage] = {bool: "bool", int: "int", float: "float", tuple: "texts"}
    if get_origin(hint) is not None and get_origin(hint) not in (tuple, Literal):
        return "map"
    return plain.get(get_origin(hint) or hint, "text")


def _to_cell(value: Any, storage: Storage) -> Any:
    if value is None:
        return None
    match storage:
        case "map":
            return list(value.items())
        case "texts":
            return list(value)
        case "moment":
            return dt.datetime.fromisoformat(value)
        case _:
            return value


def _from_cell(value: Any, storage: Storage) -> Any:
    match storage:
        case "map":
            return dict(value or ())
        case "texts":
            return tuple(value or ())
        case "moment" if value is not None:
            return value.astimezone(dt.UTC).isoformat()
        case _:
            return value
