"""The warehouse: Parquet files that any number of programs read and write at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coldrun.tasks.lib.errors import StorageError, UsageError
from coldrun.warehouse.reader import connect, find_run_id, select_rows
from coldrun.warehouse.schemas import TABLES
from coldrun.warehouse.writer import EMPTY_NAME, prepare_warehouse, write_rows

ROOT = Path(__file__).parents[2]


def test_connect_to_an_empty_warehouse_has_every_table_and_view(tmp_path: Path) -> None:
    """Before anything has run, a question has an answer: no rows."""
    connection = connect(tmp_path / "new")

    for table in TABLES:
        assert select_rows(connection, f"SELECT * FROM {table}") == []
    views = select_rows(connection, "SELECT view_name AS name FROM duckdb_views WHERE NOT internal")
    names = {row["name"] for row in views}
    written = {path.stem for path in Path(__file__).parents[2].glob("warehouse/views/*.sql")}
    assert names == {*TABLES, *written}
    for view in written:
        assert select_rows(connection, f"SELECT * FROM {view}") == []


def test_connect_to_a_path_with_odd_characters_works(tmp_path: Path) -> None:
    """Quotes, spaces and glob characters in a folder's name are no SQL and no pattern."""
    root = tmp_path / "it's a [warehouse]* ?"
    write_rows(root_of(root), "runs", "r1", [{"run_id": "r1"}])

    assert select_rows(connect(root), "SELECT run_id FROM runs") == [{"run_id": "r1"}]


def root_of(root: Path) -> Path:
    prepare_warehouse(root)
    return root


def test_write_rows_twice_replaces_the_runs_own_file(tmp_path: Path) -> None:
    """Landing again is not landing twice."""
    root = root_of(tmp_path)
    write_rows(root, "runs", "r1", [{"run_id": "r1", "planned": 1}])
    write_rows(root, "runs", "r2", [{"run_id": "r2", "planned": 2}])
    write_rows(root, "runs", "r1", [{"run_id": "r1", "planned": 3}])

    rows = select_rows(connect(root), "SELECT run_id, planned FROM runs ORDER BY run_id")
    assert rows == [{"run_id": "r1", "planned": 3}, {"run_id": "r2", "planned": 2}]
    assert list(root.glob("*/.*")) == []


def test_file_of_an_older_version_reads_null_for_a_column_it_lacks(tmp_path: Path) -> None:
    """Columns are added over the years; rows from before are still rows."""
    root = root_of(tmp_path)
    old = pa.table({"run_id": ["old"], "verdict": ["measured"]})
    pq.write_table(old, root / "runs" / "old.parquet")
    write_rows(root, "runs", "new", [{"run_id": "new", "verdict": "measured", "planned": 5}])

    rows = select_rows(connect(root), "SELECT run_id, planned FROM runs ORDER BY run_id")
    assert rows == [{"run_id": "new", "planned": 5}, {"run_id": "old", "planned": None}]
    empty = root / "tasks" / EMPTY_NAME
    pq.write_table(pa.table({"run_id": pa.array([], pa.string())}), empty)
    assert select_rows(connect(root), "SELECT query FROM tasks") == []
    assert pq.read_schema(empty).equals(TABLES["tasks"])


def test_warehouse_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    """A file is in the way; the message says where to go."""
    (tmp_path / "file").touch()

    with pytest.raises(StorageError, match="name a writable folder with --warehouse"):
        connect(tmp_path / "file" / "warehouse")


def test_find_run_id_takes_an_id_a_start_and_last(tmp_path: Path) -> None:
    """And says what there is when nothing or too much fits."""
    root = root_of(tmp_path)
    with pytest.raises(UsageError, match="there are none yet"):
        find_run_id(connect(root), "last")
    for run_id in ("20260801-000000-a", "20260801-000000-b", "20260901-000000-c"):
        write_rows(root, "runs", run_id, [{"run_id": run_id}])
    connection = connect(root)

    assert find_run_id(connection, "last") == "20260901-000000-c"
    write_rows(root, "runs", "20260801-000000-aa", [{"run_id": "20260801-000000-aa"}])
    assert find_run_id(connection, "202609") == "20260901-000000-c"
    assert find_run_id(connection, "20260801-000000-a") == "20260801-000000-a"
    with pytest.raises(UsageError, match="is the start of 3 runs"):
        find_run_id(connection, "202608")
    with pytest.raises(UsageError, match="the newest is 20260901-000000-c"):
        find_run_id(connection, "2025")


LANDER = """
import sys
from pathlib import Path
from coldrun.warehouse.writer import prepare_warehouse, write_rows

root, name = Path(sys.argv[1]), sys.argv[2]
for number in range(20):
    prepare_warehouse(root)
    run_id = f"{name}{number}"
    rows = [{"run_id": run_id, "task_id": f"t{place}"} for place in range(500 + number)]
    for table in ("tasks", "captures", "scores"):
        write_rows(root, table, run_id, rows)
    write_rows(root, "runs", run_id, [{"run_id": run_id, "planned": len(rows)}])
"""


def test_two_programs_land_in_one_warehouse_while_a_third_reads(tmp_path: Path) -> None:
    """Whatever the reader sees of a run whose summary has landed is all of it."""
    landers = [
        subprocess.Popen([sys.executable, "-c", LANDER, str(tmp_path), name], cwd=ROOT)
        for name in ("a", "b")
    ]
    while any(lander.poll() is None for lander in landers):
        rows = select_rows(
            connect(tmp_path, only=("runs", "scores")),
            "SELECT run_id, any_value(planned) AS planned, count(s.task_id) AS found "
            "FROM runs LEFT JOIN scores s USING (run_id) GROUP BY run_id",
        )
        assert all(row["planned"] == row["found"] for row in rows)

    assert [lander.returncode for lander in landers] == [0, 0]
    counts = select_rows(connect(tmp_path), "SELECT count(*) AS runs, sum(planned) AS n FROM runs")
    assert counts == [{"runs": 40, "n": 2 * sum(range(500, 520))}]
    assert list(tmp_path.glob("*/.*")) == []
