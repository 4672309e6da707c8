"""Reading the warehouse: DuckDB in memory over the Parquet files, with the views of views/*.sql."""

from __future__ import annotations

import glob
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import StorageError, UsageError
from warehouse.schemas import TABLES
from warehouse.writer import prepare_warehouse

VIEWS = Path(__file__).parent / "views"


def connect(root: Path, *, only: Collection[str] = ()) -> duckdb.DuckDBPyConnection:
    """A fresh in-memory database whose tables are views over the warehouse's Parquet files.

    Args:
        root: The warehouse.
        only: Names of the tables and views that are needed, those that they read included; left
            out, all. Making a view reads the schema of every file below it, so a query that is
            asked at every point of a long history names what it needs.

    Raises:
        StorageError: A file is damaged or holds other columns; the message names it.
    """
    prepare_warehouse(root)
    try:
        return _connect(root, only)
    except duckdb.Error as error:
        raise _describe_damage(root, error) from None


def _connect(root: Path, only: Collection[str]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 2})
    for name in TABLES:
        if only and name not in only:
            continue
        folder = glob.escape(str(root / name)).replace("'", "''")
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * FROM "  # noqa: S608 - names and path are our own
            f"read_parquet('{folder}/*.parquet', union_by_name = true)"
        )
    for path in sorted(VIEWS.glob("*.sql")):
        if only and path.stem not in only:
            continue
        connection.execute(path.read_text(encoding="utf-8"))
    return connection


def _describe_damage(root: Path, error: Exception) -> StorageError:
    for name in TABLES:
        for path in sorted((root / name).glob("*.parquet")):
            try:
                pq.read_schema(path)
            except (OSError, pa.ArrowInvalid):
                return StorageError(
                    f"{path} is no readable Parquet file; restore it, or move it out of the "
                    "warehouse (what it held is not in any report then)"
                )
    return StorageError(f"the warehouse {root} cannot be read: {str(error).splitlines()[0]}")


def select_rows(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: list[Any] | None = None
) -> list[dict[str, Any]]:
    """The result of a query as one dictionary per row."""
    cursor = connection.execute(query, parameters or [])
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def find_run_id(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """The full id of the run that `text` names: an id, an unambiguous start of one, or `last`.

    Raises:
        UsageError: No run or several runs fit.
    """
    ids = [
        row["run_id"]
        for row in select_rows(connection, "SELECT run_id FROM runs ORDER BY started_at, run_id")
    ]
    if text == "last" and ids:
        return str(ids[-1])
    fitting = [run_id for run_id in ids if run_id == text] or [
        run_id for run_id in ids if run_id.startswith(text)
    ]
    if len(fitting) == 1:
        return str(fitting[0])
    if fitting:
        raise UsageError(f"{text!r} is the start of {len(fitting)} runs; give more of the id")
    known = f"the newest is {ids[-1]}" if ids else "there are none yet"
    raise UsageError(f"no run {text!r} in the warehouse; {known} (`coldrun runs` lists them)")
