"""The files of a frozen panel, written whole; an earlier freeze is never lost silently."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from tasks.canonical import digest_bytes
from tasks.errors import LockError, StorageError
from tasks.freeze.freeze import FrozenResult
from tasks.freeze.lock import (
    EvaluationFiles,
    changed_settings,
    check_digest,
    lock_to_bytes,
    read_lock,
)

Written = Literal["frozen", "unchanged", "restored", "replaced"]


def write_frozen(
    files: EvaluationFiles, result: FrozenResult, *, force: bool, had_runs: bool, now: str
) -> Written:
    """Write panel and lock beside the configuration.

    Args:
        force: Replace a lock that says something else; it remembers the earlier hash and date.
        had_runs: Whether a run of the earlier panel exists; later reports then say what changed.
        now: The present time, ISO 8601 in UTC.

    Returns:
        `frozen` the first time, `unchanged` when all is as it was (nothing is written),
        `restored` when the lock was there and the panel was not, else `replaced`.

    Raises:
        LockError: The lock or the panel's bytes say something else and `force` is false.
        StorageError: The folder cannot be written; nothing half-written stays.
    """
    lock = {**result.lock, "frozen_at": now}
    if not files.lock.exists():
        _write_all(files, result.panel, lock)
        return "frozen"
    try:
        earlier = read_lock(files)
    except LockError:
        if not force:
            raise
        earlier = {"panel": {"digest": digest_bytes(files.lock.read_bytes())}, "settings": {}}
    same_lock = {**earlier, "frozen_at": now, "history": []} == {**lock, "history": []}
    if same_lock and _has_bytes(files.panel, result.panel):
        return "unchanged"
    if same_lock and (force or not files.panel.exists()):
        _write_all(files, result.panel, earlier)
        return "restored"
    if same_lock:
        check_digest(
            files,
            expected=earlier["panel"]["digest"],
            found=digest_bytes(files.panel.read_bytes()),
        )
    changed = changed_settings(earlier["settings"], lock["settings"])
    if not force:
        what = ", ".join(changed) or "the history, the miner or the clone"
        raise LockError(
            f"{files.lock} is frozen and would change ({what}): the panel would go from "
            f"{earlier['panel']['digest']} to {lock['panel']['digest']}; repeat with --force to "
            "replace it (the lock remembers the earlier hash and date)"
        )
    entry = {
        "digest": earlier["panel"]["digest"],
        "frozen_at": earlier.get("frozen_at"),
        "replaced_at": now,
        "changed": list(changed),
        "had_runs": had_runs,
    }
    lock["history"] = [*earlier.get("history", []), entry]
    _write_all(files, result.panel, lock)
    return "replaced"


def _has_bytes(path: Path, data: bytes) -> bool:
    return path.exists() and path.read_bytes() == data


def _write_all(files: EvaluationFiles, panel: bytes, lock: dict[str, Any]) -> None:
    write_whole(files.panel, panel)
    write_whole(files.lock, lock_to_bytes(lock))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or what was there before.

    Raises:
        StorageError: The folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}; free some room or choose a writable folder"
        ) from None
