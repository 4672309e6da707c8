"""The warehouse's tables as Arrow schemas: one Parquet file per run and table."""

from __future__ import annotations

import pyarrow as pa

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
    ]
)

CAPTURES = pa.schema(
    [
        ("run_id", pa.string()),
        ("key", pa.string()),
        ("task_id", pa.string()),
        ("arm", pa.string()),
        ("role", pa.string()),
        ("trial", pa.int32()),
        ("seed", pa.int64()),
        ("evidence", pa.string()),  # executed | replayed
        ("is_resumed", pa.bool_()),
        ("source_run_id", pa.string()),
        ("captured_at", _UTC),
        ("status", pa.string()),  # answered | abstained | infra
        ("reason", pa.string()),
        ("stderr", pa.string()),
        ("answer_seconds", pa.float64()),
        ("stop_reason", pa.string()),
        ("degraded", pa.list_(pa.string())),
        ("session_id", pa.string()),
        ("corpus_dir", pa.string()),
        ("is_dirty", pa.bool_()),
        ("is_identified", pa.bool_()),
        ("raw", pa.large_string()),
        ("trajectory", pa.large_string()),
        ("key_parts", _TEXT_MAP),
    ]
)

ATTEMPTS = pa.schema(
    [
        ("run_id", pa.string()),
        ("key", pa.string()),
        ("task_id", pa.string()),
        ("arm", pa.string()),
        ("trial", pa.int32()),
        ("number", pa.int32()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("attempt_seconds", pa.float64()),
        ("model", pa.string()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cache_read_tokens", pa.int64()),
        ("cache_write_tokens", pa.int64()),
        # of a failed answer that was asked again; null in rows from before they were kept
        ("was_replaced", pa.bool_()),
    ]
)

EVENTS = pa.schema(
    [
        ("run_id", pa.string()),
        ("key", pa.string()),
        ("task_id", pa.string()),
        ("arm", pa.string()),
        ("trial", pa.int32()),
        ("position", pa.int32()),
        ("name", pa.string()),
        ("arguments_digest", pa.string()),
        ("returned_bytes", pa.int64()),
        ("returned_tokens", pa.int64()),
    ]
)

SESSIONS = pa.schema(
    [
        ("run_id", pa.string()),
        ("session_id", pa.string()),
        ("arm", pa.string()),
        ("trial", pa.int32()),
        ("startup_seconds", pa.float64()),
        ("indexing_seconds", pa.float64()),
        ("corpus_dir", pa.string()),
        ("nonce", pa.string()),
        ("reported_name", pa.string()),
        ("reported_commit", pa.string()),
        ("loaded_from", pa.string()),
        ("degraded", pa.list_(pa.string())),
        ("invalid", pa.list_(pa.string())),
        ("warnings", pa.list_(pa.string())),
        ("restarts", pa.int32()),
        ("log", pa.large_string()),
    ]
)

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
    "captures": CAPTURES,
    "attempts": ATTEMPTS,
    "events": EVENTS,
    "sessions": SESSIONS,
    "scores": SCORES,
    "points": POINTS,
}
