"""The files of a frozen panel, written whole; an earlier freeze is never lost silently."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, Literal

from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.freeze_panel import FrozenResult, freeze_panel
from coldrun.tasks.freeze.lock import (
    EvaluationFiles,
    changed_settings,
    check_digest,
    lock_to_bytes,
    panel_from_bytes,
    read_lock,
)
from coldrun.tasks.holdout.demotion import find_read
from coldrun.tasks.holdout.sealed_file import is_intact, write_key_and_seal
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.errors import LedgerError, LockError
from coldrun.tasks.lib.machine.files import write_together
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.mine.mine_panel import read_mined

Written = Literal["frozen", "unchanged", "restored", "replaced"]


def freeze_mined(config_path: Path, mined: Path) -> str:
    """Freeze a mined panel beside its configuration, in place of whatever was; gives its digest."""
    result = freeze_panel(load_config(config_path), read_mined(mined))
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    write_frozen(EvaluationFiles(config_path), result, force=True, had_runs=False, now=now)
    current_watch().results["frozen"] = result
    return digest_bytes(result.panel)


def write_frozen(
    files: EvaluationFiles,
    result: FrozenResult,
    *,
    force: bool,
    had_runs: bool,
    now: str,
    last_run_lock: dict[str, Any] | None = None,
) -> Written:
    """Write panel and lock beside the configuration, whole or not at all.

    `last_run_lock`, of the newest run, stands in for a lock that is gone or unreadable.
    """
    lock = {**result.lock, "frozen_at": now}
    is_lock_whole = False
    earlier = last_run_lock
    if files.lock.exists():
        try:
            earlier = read_lock(files)
            is_lock_whole = True
        except LockError:
            if not force:
                raise
            unread = {"panel": {"digest": digest_bytes(files.lock.read_bytes())}, "settings": {}}
            earlier = last_run_lock or unread
    if not is_lock_whole:
        _refuse_losing_ledger(files)
    if earlier is None:
        _write_all(files, result, lock)
        return "frozen"
    lock["holdout"] = earlier.get("holdout") or lock["holdout"]
    same_lock = _frozen_part(earlier) == _frozen_part(lock)
    if not is_lock_whole and same_lock:
        _write_all(files, result, earlier)
        return "frozen"
    if same_lock and _has_bytes(files.panel, result.panel) and _has_sealed(files, lock):
        return "unchanged"
    is_panel_right = _has_bytes(files.panel, result.panel)
    if same_lock and (force or is_panel_right or not files.panel.exists()):
        _write_all(files, result, earlier)
        return "restored"
    if same_lock:
        check_digest(files, expected=earlier["panel"]["digest"], data=files.panel.read_bytes())
    changed = _changes(earlier, lock)
    if is_lock_whole and not force:
        raise LockError(
            f"{files.lock} is frozen and would change "
            f"({', '.join(changed) or 'the history, the miner or the clone'}): "
            f"{_name_panels(earlier, lock)}; repeat with --force to replace it (the lock remembers "
            "the earlier hash and date)"
        )
    _refuse_sealing_again(lock, result)
    entry = {
        "digest": earlier["panel"]["digest"],
        "frozen_at": earlier.get("frozen_at"),
        "replaced_at": now,
        "changed": list(changed),
        "had_runs": had_runs,
    }
    lock["history"] = [*earlier.get("history", []), entry]
    _write_all(files, result, lock)
    return "replaced"


def _frozen_part(lock: dict[str, Any]) -> dict[str, Any]:
    """What a second freeze has to find again; older locks lack the scores of the nulls."""
    found = {key: lock[key] for key in lock if key not in ("frozen_at", "history", "holdout")}
    panel = {key: lock["panel"][key] for key in lock["panel"] if key not in ("notes", "nulls")}
    return {**found, "panel": panel}


def _changes(earlier: dict[str, Any], lock: dict[str, Any]) -> tuple[str, ...]:
    guards = changed_settings({"run": earlier.get("guards")}, {"run": lock["guards"]})
    return (*changed_settings(earlier["settings"], lock["settings"]), *guards)


def _name_panels(earlier: dict[str, Any], lock: dict[str, Any]) -> str:
    before, after = earlier["panel"]["digest"], lock["panel"]["digest"]
    if before == after:
        return f"the panel stays {before}"
    return f"the panel would go from {before} to {after}"


def _has_sealed(files: EvaluationFiles, lock: dict[str, Any]) -> bool:
    return lock["sealed"] is None or is_intact(files, lock["sealed"]["digest"])


def _refuse_sealing_again(lock: dict[str, Any], result: FrozenResult) -> None:
    demoted = (lock.get("holdout") or {}).get("demoted")
    if demoted is None or result.sealed_panel is None:
        return
    if lock["sealed"]["digest"] == demoted["digest"]:
        return
    again = find_read(panel_from_bytes(result.sealed_panel), demoted)
    if again:
        dates = [date for task in again if (date := task.date) is not None]
        newest = max([*dates, demoted.get("until") or ""])[:10]
        what_to_do = (
            f"seal later ones with [split] sealed_after = {newest}"
            if newest
            else "give later ones a date, and seal them with [split] sealed_after"
        )
        raise LockError(
            f"{len(again)} of the tasks to be sealed were read task by task on {demoted['at']}, "
            f"or are no later than those, and are dev for good; {what_to_do}"
        )


def _refuse_losing_ledger(files: EvaluationFiles) -> None:
    if files.ledger.exists():
        what = "cannot be read" if files.lock.exists() else "is gone"
        raise LedgerError(
            f"{files.lock} {what}, and it holds the head of the ledger {files.ledger}; "
            "restore the lock from version control before you freeze again"
        )


def _has_bytes(path: Path, data: bytes) -> bool:
    return path.exists() and path.read_bytes() == data


def _write_all(files: EvaluationFiles, result: FrozenResult, lock: dict[str, Any]) -> None:
    contents = {files.panel: result.panel, files.lock: lock_to_bytes(lock)}
    if result.sealed_panel is not None and not is_intact(files, result.lock["sealed"]["digest"]):
        sealed = write_key_and_seal(files, result.sealed_panel)
        contents = {files.sealed: sealed, **contents}
    write_together(contents)
    if result.sealed_panel is None:
        files.sealed.unlink(missing_ok=True)
