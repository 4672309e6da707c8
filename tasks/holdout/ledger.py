"""The ledger of openings on disk, and its head in the lock.

The ledger is written before the lock, each whole. A crash in between leaves a ledger that goes on
where the lock ends, which is told apart from a changed one, and never hides an opening. Before
anything is asked, the opening is noted in the scratch folder: one whose program was killed is
written down by the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from coldrun.tasks.freeze.lock import EvaluationFiles, lock_to_bytes, read_lock
from coldrun.tasks.holdout.demotion import join_readings
from coldrun.tasks.holdout.openings import (
    Opening,
    check_head,
    count_openings,
    known_head,
    last_hash,
    ledger_from_bytes,
    ledger_to_bytes,
    opening_from_line,
)
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.errors import LedgerError, UsageError
from coldrun.tasks.lib.machine.file_locks import try_lock
from coldrun.tasks.lib.machine.files import write_whole


def read_ledger(files: EvaluationFiles, lock: Mapping[str, Any]) -> tuple[Opening, ...]:
    """The openings, checked line by line and against the lock."""
    openings = read_lines(files)
    check_head(openings, *known_head(lock), source=str(files.ledger))
    return openings


def read_lines(files: EvaluationFiles) -> tuple[Opening, ...]:
    """The openings, checked line by line; none when there is no ledger."""
    try:
        data = files.ledger.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise LedgerError(f"cannot read the ledger {files.ledger}: {error.strerror}") from None
    return ledger_from_bytes(data, source=str(files.ledger))


def append_opening(
    files: EvaluationFiles, opening: Opening, *, demoted: Mapping[str, Any] | None = None
) -> tuple[Opening, ...]:
    """Write one more opening, then its hash and number into the lock; gives all openings.

    With `demoted`, the lock says that the sealed part is dev from now on.

    Raises:
        LedgerError: Ledger and lock do not fit any more; nothing was written.
    """
    lock = read_lock(files)
    earlier = read_ledger(files, lock)
    if opening.number != len(earlier) + 1 or opening.previous != last_hash(earlier):
        raise LedgerError(
            f"{files.ledger} got another line while this opening ran; nothing was told, and this "
            "opening is not written down: open it again"
        )
    openings = (*earlier, opening)
    write_whole(files.ledger, ledger_to_bytes(openings))
    _write_head(files, lock, openings, demoted)
    return openings


def adopt_openings(files: EvaluationFiles) -> tuple[Opening, ...]:
    """Let the lock know of openings that only the ledger has, left by a crash; gives those."""
    lock = read_lock(files)
    count, head = known_head(lock)
    openings = read_lines(files)
    check_head(openings[:count], count, head, source=str(files.ledger))
    extra = openings[count:]
    if extra:
        _write_head(files, lock, openings, _demotion(extra))
    return extra


@contextmanager
def hold_ledger(files: EvaluationFiles, scratch: Path) -> Iterator[Opening | None]:
    """Hold the evaluation's sealed part, so that two openings cannot run at once.

    Yields the line that was written for an earlier opening whose program was killed, if any.
    """
    lock = try_lock(_scratch_file(files, scratch, "lock"))
    if lock is None:
        raise UsageError(f"the sealed part of {files.config} is being opened by another program")
    try:
        yield _settle_killed(files, scratch)
    finally:
        lock.release()


def note_beginning(files: EvaluationFiles, scratch: Path, opening: Opening) -> None:
    """Note an opening before anything is asked, in case nobody is left to write it down."""
    write_whole(_scratch_file(files, scratch, "begun"), ledger_to_bytes([opening]))


def forget_beginning(files: EvaluationFiles, scratch: Path) -> None:
    """Remove the note: the opening is written down, or asked nothing."""
    _scratch_file(files, scratch, "begun").unlink(missing_ok=True)


def demotion_entry(opening: Opening, reading: Mapping[str, Any]) -> dict[str, Any]:
    """What the lock keeps of a task-level opening, and of what was read in it."""
    return {
        "at": opening.at,
        "opening": opening.number,
        "digest": opening.sealed_digest,
        **reading,
    }


def _scratch_file(files: EvaluationFiles, scratch: Path, suffix: str) -> Path:
    name = digest_bytes(str(files.config.resolve()).encode()).removeprefix("sha256:")
    return scratch.resolve() / "holdout" / f"{name[:32]}.{suffix}"


def _settle_killed(files: EvaluationFiles, scratch: Path) -> Opening | None:
    note = _scratch_file(files, scratch, "begun")
    if not note.exists():
        return None
    begun = opening_from_line(note.read_bytes(), place=str(note))
    openings = read_ledger(files, read_lock(files))
    killed = None
    if not any((line.at, line.reason) == (begun.at, begun.reason) for line in openings):
        killed = replace(begun, number=len(openings) + 1, previous=last_hash(openings))
        append_opening(files, killed)
    note.unlink()
    return killed


def _demotion(openings: Sequence[Opening]) -> dict[str, Any] | None:
    """The demotion that a crash kept out of the lock; what was read stands in the line itself."""
    read = [found for found in openings if found.is_task_level and found.result is not None]
    if not read:
        return None
    return demotion_entry(read[-1], join_readings([_reading(found.result or {}) for found in read]))


def _reading(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a line says was read; an older one has the ids alone."""
    found: Mapping[str, Any] = result.get("read") or {"tasks": result.get("task_ids", ())}
    return found


def _write_head(
    files: EvaluationFiles,
    lock: Mapping[str, Any],
    openings: Sequence[Opening],
    demoted: Mapping[str, Any] | None,
) -> None:
    holdout = {
        **(lock.get("holdout") or {}),
        "head": last_hash(openings),
        "count": len(openings),
        "opened": count_openings(openings),
    }
    if demoted is not None:  # what was read earlier stays read
        before = holdout.get("demoted")
        holdout["demoted"] = {**demoted, **join_readings([demoted, *([before] if before else [])])}
    write_whole(files.lock, lock_to_bytes({**lock, "holdout": holdout}))
