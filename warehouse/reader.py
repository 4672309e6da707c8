"""Reading the warehouse: DuckDB in memory over the Parquet files, with the views of views/*.sql."""

from __future__ import annotations

import functools
import glob
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from coldrun.tasks.lib.errors import StorageError, UsageError
from coldrun.warehouse.damage import UnreadableFileWarning
from coldrun.warehouse.schemas import TABLES
from coldrun.warehouse.writer import EMPTY_NAME, prepare_warehouse

VIEWS = Path(__file__).parent / "views"


def connect(
    root: Path,
    *,
    only: Collection[str] = (),
    runs: Collection[str] | None = None,
    leaves_out: bool = False,
) -> duckdb.DuckDBPyConnection:
    """A fresh in-memory database whose tables are views over the warehouse's Parquet files.

    A row counts only in the file that has the name of its run, so that a copy is not a second run.

    Args:
        root: The warehouse.
        only: Names of the tables and views that are needed, those that they read included; left
            out, all. Making a view reads the schema of every file below it, so a query that is
            asked at every point of a long history names what it needs.
        runs: The ids of the runs that are needed; left out, all. Files of others are not opened.
        leaves_out: Leave out files that cannot be read, with a warning each, so that other runs
            can still be looked at. Whoever decides something by what is there (whether a run
            exists, what was tried) does not.

    Raises:
        StorageError: A file is damaged or holds other columns; the message names it.
    """
    prepare_warehouse(root)
    try:
        return _connect(root, only, runs, {})
    except (duckdb.Error, _OtherColumnsError) as error:
        names = [name for name in TABLES if not only or name in only]
        damage = {path: problem for name in names for path, problem in find_damage(root, name)}
        if not damage:
            raise StorageError(
                f"the warehouse {root} cannot be read: {str(error).splitlines()[0]}"
            ) from None
        if not leaves_out:
            raise StorageError(_damage_words(damage)) from None
    for path, problem in damage.items():
        words = f"{path} {problem} and is left out; {NEXT_STEP}"
        warnings.warn(words, UnreadableFileWarning, stacklevel=2)
    return _connect(root, only, runs, damage)


RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")
NEXT_STEP = "restore the file, or move it out of the warehouse"


class _OtherColumnsError(Exception):
    """A table has columns of other types than its schema."""


def find_damage(root: Path, table: str, *, is_thorough: bool = False) -> Iterator[tuple[Path, str]]:
    """The files of a table that cannot be read, each with what is wrong with it.

    Args:
        root: The warehouse.
        table: The table's name.
        is_thorough: Read every row, and not the schemas alone.
    """
    for path in sorted((root / table).glob("*.parquet")):
        if path.is_file():
            problem = _find_problem(path, table, is_thorough=is_thorough)
            if problem is not None:
                yield path, problem


def _find_problem(path: Path, table: str, *, is_thorough: bool) -> str | None:
    schema = TABLES[table]
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow
            runs: set[object] = set()
            for batch in file.iter_batches() if is_thorough else ():
                if "run_id" in found.names:
                    runs.update(batch["run_id"].unique().to_pylist())
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        return f"is no readable Parquet file ({reason})"
    if "run_id" not in found.names:
        return f"is not of the table {table}: it has no run_id"
    for field in found:
        if field.name in schema.names and field.type != schema.field(field.name).type:
            return f"is not of the table {table}: {field.name} is {field.type} there"
    if runs - {path.stem}:
        return f"holds rows of {min(map(str, runs - {path.stem}))}, whose name it does not have"
    return None


def _damage_words(damage: Mapping[Path, str]) -> str:
    (path, problem), *others = damage.items()
    more = f" ({len(others)} more files are like it, `coldrun doctor` lists them)" if others else ""
    return f"{path} {problem}{more}; {NEXT_STEP} (what it held is not in any report then)"


def _connect(
    root: Path, only: Collection[str], runs: Collection[str] | None, left_out: Mapping[Path, str]
) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET parquet_metadata_cache = true")
    connection.execute("CREATE TABLE left_out (run_id VARCHAR, path VARCHAR, problem VARCHAR)")
    for path, problem in left_out.items():
        row = [path.stem, str(path), problem]
        connection.execute("INSERT INTO left_out VALUES (?, ?, ?)", row)
    for name in TABLES:
        if only and name not in only:
            continue
        folder = root / name
        files = [glob.escape(str(folder)) + "/*.parquet"]
        if runs is not None or any(path.parent == folder for path in left_out):
            names = None if runs is None else {Path(EMPTY_NAME).stem, *runs}
            files = [
                glob.escape(str(path))
                for path in sorted(folder.glob("*.parquet"))
                if path not in left_out and (names is None or path.stem in names)
            ]
        texts = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * EXCLUDE (filename) FROM "  # noqa: S608 - our own
            f"read_parquet([{texts}], union_by_name = true, filename = true) "
            "WHERE run_id = parse_filename(filename, true)"
        )
        _check_types(connection, name)
    for path in sorted(VIEWS.glob("*.sql")):
        if only and path.stem not in only:
            continue
        connection.execute(path.read_text(encoding="utf-8"))
    return connection


def _check_types(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Raise when a foreign file has changed the type of a column for all."""
    wanted = dict(zip(TABLES[table].names, _types_of(table), strict=True))
    rows = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [table]
    ).fetchall()
    for name, found in rows:
        if wanted.get(name, found) != found:
            raise _OtherColumnsError(f"{table}.{name} is {found}, not {wanted[name]}")


@functools.cache
def _types_of(table: str) -> list[str]:
    """The types of a table's columns as DuckDB writes them."""
    with duckdb.connect(":memory:") as connection:
        return [str(found) for found in connection.from_arrow(TABLES[table].empty_table()).types]


def select_rows(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: list[Any] | None = None
) -> list[dict[str, Any]]:
    """The result of a query as one dictionary per row.

    Raises:
        StorageError: A file's rows cannot be read, though its schema could.
    """
    try:
        cursor = connection.execute(query, parameters or [])
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException):
        raise
    except duckdb.Error as error:
        raise StorageError(
            f"the warehouse cannot be read: {str(error).splitlines()[0]}; `coldrun doctor` names "
            "the files that are damaged"
        ) from None


def find_run_id(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """The full id of the run that `text` names: an id, an unambiguous start of one, or `last`.

    Raises:
        UsageError: No run or several runs fit.
        StorageError: The run that fits was left out because its file cannot be read.
    """
    ids = [
        row["run_id"]
        for row in select_rows(connection, "SELECT run_id FROM runs ORDER BY started_at, run_id")
    ]
    left_out = select_rows(connection, "SELECT * FROM left_out ORDER BY run_id DESC")
    for row in left_out:
        is_run = RUN_ID.fullmatch(row["run_id"]) is not None
        is_newest = text == "last" and is_run and row["run_id"] > max(ids, default="")
        if is_newest or (row["run_id"].startswith(text) and text not in ids):
            raise StorageError(f"{row['path']} {row['problem']}; {NEXT_STEP}")
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


def list_runs(warehouse: Path, *, name: str | None = None, limit: int) -> list[dict[str, Any]]:
    """The newest landed runs first, as JSON values."""
    return select_rows(
        connect(warehouse, only=("runs",), leaves_out=True),
        "SELECT run_id, name, status, strftime(started_at, '%Y-%m-%dT%H:%M:%SZ') AS started_at, "
        "wall_seconds, panel_digest, verdict, evidence, exit_code, product_commit, is_dirty, "
        "planned, executed, replayed, resumed, infra FROM runs "
        "WHERE ? IS NULL OR name = ? ORDER BY runs.started_at DESC, run_id DESC LIMIT ?",
        [name, name, limit],
    )


def list_unfinished(warehouse: Path) -> list[str]:
    """The ids of the runs that can be continued, oldest first."""
    return sorted(path.parent.name for path in (warehouse / "captures").glob("*/run.json"))
