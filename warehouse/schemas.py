"""The warehouse's tables as Arrow schemas: one Parquet file per run and table."""

from __future__ import annotations

import pyarrow as pa

from coldrun.tasks.lib.records import Attempt, ComponentEvent, SessionRecord
from coldrun.tasks.lib.table_record import storages
from coldrun.tasks.run.capture import DETAIL_OF, Capture

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_UTC = pa.timestamp("us", tz="UTC")
_LEG = pa.struct(
    [
        ("started_at", _UTC),
        ("seconds", pa.float64()),
        ("was_killed", pa.bool_()),  # nobody saw its end: seconds count to its last answer
    ]
)

RUNS = pa.schema(
    [
        ("run_id", pa.string()),
        ("name", pa.string()),
        ("status", pa.string()),  # finished | interrupted
        ("started_at", _UTC),
        ("finished_at", _UTC),
        ("wall_seconds", pa.float64()),  # of all legs; of the last one alone where legs is null
        (
            "legs",
            pa.list_(_LEG),
        ),  # null in rows from before they were recorded
        ("panel_digest", pa.string()),
        ("lock_digest", pa.string()),
        ("verdict", pa.string()),
        ("evidence", pa.string()),
        ("exit_code", pa.int16()),
        ("product_repo", pa.string()),
        ("product_commit", pa.string()),
        ("product_tree", pa.string()),
        ("is_dirty", pa.bool_()),
        ("environment_digest", pa.string()),
        ("planned", pa.int64()),
        ("executed", pa.int64()),
        ("replayed", pa.int64()),
        ("resumed", pa.int64()),
        ("infra", pa.int64()),
        ("manifest", pa.string()),  # JSON: all that the run was started with
        ("files", pa.string()),  # JSON: SHA-256 of its measured rows by table
        ("digest", pa.string()),  # covers files and manifest; null in older rows
    ]
)

TASKS = pa.schema(
    [
        ("run_id", pa.string()),
        ("task_id", pa.string()),
        ("query", pa.string()),
        ("answer", pa.string()),
        ("date", pa.string()),
        ("base", pa.string()),
        ("gold", pa.list_(pa.string())),
        ("grades", pa.list_(pa.float64())),
        ("provenances", pa.list_(pa.string())),
        ("strata", _TEXT_MAP),
        ("parts", pa.list_(pa.string())),  # of the panel; null or empty: only in the population
    ]
)

_STORED = {
    "text": pa.string(),
    "large_text": pa.large_string(),
    "moment": _UTC,
    "bool": pa.bool_(),
    "int": pa.int64(),
    "int32": pa.int32(),
    "float": pa.float64(),
    "texts": pa.list_(pa.string()),
    "map": _TEXT_MAP,
}


def schema_of(record: type) -> pa.Schema:
    """The columns that the rows of a record have."""
    return pa.schema([(name, _STORED[storage]) for name, storage in storages(record).items()])


def _details_of(record: type) -> pa.Schema:
    """The columns of a part of a capture, after those that say which capture it is."""
    whole = schema_of(Capture)
    return pa.schema([*(whole.field(name) for name in DETAIL_OF), *schema_of(record)])


SCORES = pa.schema(
    [
        ("run_id", pa.string()),
        ("panel_digest", pa.string()),
        ("product_commit", pa.string()),
        ("product_tree", pa.string()),
        ("arm", pa.string()),
        ("role", pa.string()),
        ("kind", pa.string()),
        ("task_id", pa.string()),
        ("measure", pa.string()),
        ("cutoff", pa.int32()),
        ("trials", pa.int32()),
        ("value", pa.float64()),  # mean over trials, in [0, 1]; infra counts as 0
        ("n", pa.int64()),  # tasks in the panel: the denominator of the aggregate
        ("evidence", pa.string()),
        ("is_infra", pa.bool_()),
        ("measured_nothing", pa.bool_()),
        ("method_version", pa.string()),
    ]
)

POINTS = pa.schema(
    [
        ("run_id", pa.string()),  # of the history; `point_run_ids` are the runs of its points
        ("kind", pa.string()),  # backfill | decompose
        ("name", pa.string()),
        ("panel_digest", pa.string()),
        ("recorded_at", _UTC),
        ("product_repo", pa.string()),
        ("product_commit", pa.string()),
        ("product_tree", pa.string()),
        ("subject", pa.string()),
        ("committed_at", _UTC),
        ("status", pa.string()),  # measured | same_tree | failed | skipped
        ("reason", pa.string()),
        ("point_seconds", pa.float64()),  # with checkout and set-up
        ("point_run_ids", pa.list_(pa.string())),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "runs": RUNS,
    "tasks": TASKS,
    "captures": schema_of(Capture),
    "attempts": _details_of(Attempt),
    "events": _details_of(ComponentEvent),
    "sessions": schema_of(SessionRecord),
    "scores": SCORES,  # of the primary part
    "other_scores": SCORES,  # of tasks outside of it; `n` is null
    "points": POINTS,
}

_IN_DUCKDB = {
    "bool": "BOOLEAN",
    "double": "DOUBLE",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "large_string": "VARCHAR",
    "string": "VARCHAR",
    "timestamp[us, tz=UTC]": "TIMESTAMP WITH TIME ZONE",
}


def in_duckdb(column: pa.DataType) -> str:
    """The type of a column as DuckDB writes it, without quotes."""
    if pa.types.is_map(column):
        return f"MAP({in_duckdb(column.key_type)}, {in_duckdb(column.item_type)})"
    if pa.types.is_list(column):
        return f"{in_duckdb(column.value_type)}[]"
    if pa.types.is_struct(column):
        parts = (f"{field.name} {in_duckdb(field.type)}" for field in column)
        return f"STRUCT({', '.join(parts)})"
    return _IN_DUCKDB[str(column)]
