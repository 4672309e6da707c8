"""Parquet files of the warehouse: written whole beside their place, then renamed into it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coldrun.tasks.lib.concealment import conceal_values
from coldrun.tasks.lib.errors import StorageError
from coldrun.warehouse.schemas import TABLES

EMPTY_NAME = "_empty.parquet"


def prepare_warehouse(root: Path) -> None:
    """Make the folders of all tables, for the user alone.

    Each has a file without rows, so that views always resolve.

    Raises:
        StorageError: The folder cannot be written.
    """
    try:
        if not root.exists():
            root.parent.mkdir(parents=True, exist_ok=True)
            root.mkdir(mode=0o700, exist_ok=True)
        for name, schema in TABLES.items():
            folder = root / name
            folder.mkdir(parents=True, exist_ok=True)
            empty = folder / EMPTY_NAME
            if not _has_schema(empty, schema):
                _write(empty, schema.empty_table())
    except OSError as error:
        raise StorageError(
            f"cannot write the warehouse {root}: {error.strerror}; "
            "name a writable folder with --warehouse or COLDRUN_WAREHOUSE"
        ) from None


def _has_schema(path: Path, schema: pa.Schema) -> bool:
    try:
        return bool(pq.read_schema(path).equals(schema))
    except (FileNotFoundError, pa.ArrowInvalid):
        return False


def write_rows(root: Path, table: str, run_id: str, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Land the rows of one run in one table. A run that lands again replaces its own file whole.

    Raises:
        StorageError: The disk is full or read-only; nothing half-written stays.
    """
    schema = TABLES[table]
    shown = [{name: conceal_values(row.get(name)) for name in schema.names} for row in rows]
    path = root / table / f"{run_id}.parquet"
    try:
        _write(path, pa.Table.from_pylist(shown, schema=schema))
    except OSError as error:
        raise StorageError(
            f"cannot land run {run_id} in {path.parent}: {error.strerror or error}; the finished "
            f"answers are kept, free some room and continue with --resume {run_id}"
        ) from None
    return path


def _write(path: Path, table: pa.Table) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        pq.write_table(table, temporary, compression="zstd")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
