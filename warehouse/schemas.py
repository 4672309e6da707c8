"""The warehouse's tables as Arrow schemas: one Parquet file per run and table."""

from __future__ import annotations

import pyarrow as pa

from coldrun.tasks.lib.records import Attempt, ComponentEvent, SessionRecord
from coldrun.tasks.lib.table_record import storages
from coldrun.tasks.run.capture import DETAIL_OF, Capture

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_UTC = pa.timestamp("us", tz="UTC")

_STORED: dict[str, pa.DataType] = {
    "text": pa.string(),
    "large_text": pa.large_string(),
    "moment": _UTC,
    "bool": pa.bool_(),
    "int": pa.int64(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "float": pa.float64(),
    "floats": pa.list_(pa.float64()),
    "texts": pa.list_(pa.string()),
    "map": _TEXT_MAP,
    # `was_killed`: nobody saw its end, and seconds count to its last answer
    "legs": pa.list_(
        pa.struct([("started_at", _UTC), ("seconds", pa.float64()), ("was_killed", pa.bool_())])
    ),
}


def _columns(*groups: tuple[str, str]) -> pa.Schema:
    """A schema from the names of columns, each group of them with how it is stored."""
    return pa.schema(
        [(name, _STORED[storage]) for names, storage in groups for name in names.split()]
    )


def schema_of(record: type) -> pa.Schema:
    """The columns that the rows of a record have."""
    return _columns(*storages(record).items())


def _details_of(record: type) -> pa.Schema:
    """The columns of a part of a capture, after those that say which capture it is."""
    whole = schema_of(Capture)
    return pa.schema([*(whole.field(name) for name in DETAIL_OF), *schema_of(record)])


RUNS = _columns(
    ("run_id name status", "text"),  # finished | interrupted
    ("started_at finished_at", "moment"),
    ("wall_seconds", "float"),  # of all legs; of the last one alone where legs is null
    ("legs", "legs"),  # null in rows from before they were recorded
    ("panel_digest lock_digest verdict evidence", "text"),
    ("exit_code", "int16"),
    ("product_repo product_commit product_tree", "text"),
    ("is_dirty", "bool"),
    ("environment_digest", "text"),
    ("planned executed replayed resumed infra", "int"),
    ("manifest", "text"),  # JSON: all that the run was started with
    ("files", "text"),  # JSON: SHA-256 of its measured rows by table
    ("digest", "text"),  # covers files and manifest; null in older rows
)

TASKS = _columns(
    ("run_id task_id query answer date base", "text"),
    ("gold", "texts"),
    ("grades", "floats"),
    ("provenances", "texts"),
    ("strata", "map"),
    ("parts", "texts"),  # of the panel; null or empty: only in the population
)

SCORES = _columns(
    ("run_id panel_digest product_commit product_tree arm role kind task_id measure", "text"),
    ("cutoff trials", "int32"),
    ("value", "float"),  # mean over trials, in [0, 1]; infra counts as 0
    ("n", "int"),  # tasks in the panel: the denominator of the aggregate
    ("evidence", "text"),
    ("is_infra measured_nothing", "bool"),
    ("method_version", "text"),
)

POINTS = _columns(
    ("run_id", "text"),  # of the history; `point_run_ids` are the runs of its points
    ("kind", "text"),  # backfill | decompose
    ("name panel_digest", "text"),
    ("recorded_at", "moment"),
    ("product_repo product_commit product_tree subject", "text"),
    ("committed_at", "moment"),
    ("status", "text"),  # measured | same_tree | failed | skipped
    ("reason", "text"),
    ("point_seconds", "float"),  # with checkout and set-up
    ("point_run_ids", "texts"),
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
