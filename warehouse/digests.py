"""Digests of what a run landed, so that a row that was edited afterwards shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.canonical import canonical_json, digest_json
from coldrun.tasks.lib.errors import EditedError
from coldrun.tasks.lib.safe_json import BadJsonError, load_object

SEALED_TABLES = ("tasks", "captures", "attempts", "events", "sessions", "scores", "other_scores")
"""The tables of a run; scores are derived, and `compare` and `trend` read them."""


def digest_files(root: Path, run_id: str) -> dict[str, str]:
    """SHA-256 of each file of measured rows that the run has landed, by table."""
    found = {}
    for table in SEALED_TABLES:
        path = root / table / f"{run_id}.parquet"
        if path.exists():
            found[table] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def seal_row(manifest: str, files: Mapping[str, str]) -> dict[str, str]:
    """The columns `files` and `digest` of a run's row: the digest covers its files and manifest."""
    return {"files": canonical_json(dict(files)).decode(), "digest": _digest(manifest, files)}


def verify_run(root: Path, row: Mapping[str, Any]) -> None:
    """Refuse a run whose files or manifest are not what it landed; one without a digest passes.

    Raises:
        EditedError: Names the file.
    """
    if row.get("digest") is None:
        return
    run_id = row["run_id"]
    try:
        files, _ = load_object(row["files"]), load_object(row["manifest"])
    except (BadJsonError, TypeError):
        raise _edited(root / "runs" / f"{run_id}.parquet") from None
    found = digest_files(root, run_id)
    for table in SEALED_TABLES:
        is_missed_by_readers = table == "scores" and table not in found
        if found.get(table) != files.get(table) and not is_missed_by_readers:
            raise _edited(root / table / f"{run_id}.parquet")
    if _digest(row["manifest"], files) != row["digest"]:
        raise _edited(root / "runs" / f"{run_id}.parquet")


def _digest(manifest: str, files: Mapping[str, str]) -> str:
    return digest_json({"manifest": json.loads(manifest), "files": dict(files)})


def _edited(path: Path) -> EditedError:
    return EditedError(
        f"{path} is not what its run landed: it was edited, exchanged or removed; restore it from "
        "a backup, or measure again"
    )
