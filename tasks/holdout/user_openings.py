"""What a user has opened, by task: a copied configuration does not make a sealed task unread.

The file lies beside the keys and holds keyed digests of tasks, so it tells nothing of them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from coldrun.tasks.holdout.openings import Opening
from coldrun.tasks.holdout.sealed_file import key_folder, write_private
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.errors import LedgerError, StorageError
from coldrun.tasks.lib.records import Task
from coldrun.tasks.lib.safe_json import load_object


def note_opening(opening: Opening, tasks: Sequence[Task]) -> None:
    """Remember an opening that gave something back.

    Raises:
        StorageError: The folder of the keys cannot be written.
    """
    values = {
        "at": opening.at,
        "opening": opening.hash,
        "sealed_digest": opening.sealed_digest,
        "tasks": sorted(_digests(tasks)),
    }
    try:
        opened = os.open(_place(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(opened, "ab") as out:
            out.write(canonical_json(values) + b"\n")
    except OSError as error:
        raise StorageError(f"cannot write {_place()}: {error.strerror}") from None


def count_other_openings(tasks: Sequence[Task], openings: Sequence[Opening]) -> int:
    """Earlier openings by this user that any of the tasks were in, without those of `openings`.

    Raises:
        LedgerError: The file is damaged.
    """
    own = {opening.hash for opening in openings}
    now = _digests(tasks)
    return sum(opening not in own and not now.isdisjoint(read) for opening, read in _read())


def _digests(tasks: Sequence[Task]) -> set[str]:
    key = _secret()
    return {
        hmac.new(
            key,
            canonical_json({"query": task.query, "gold": sorted(task.shape)}),
            hashlib.sha256,
        ).hexdigest()
        for task in tasks
    }


def _read() -> Iterator[tuple[str, list[str]]]:
    try:
        lines = _place().read_bytes().splitlines()
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        try:
            values = load_object(line)
            yield values["opening"], list(values["tasks"])
        except (ValueError, KeyError, TypeError):
            raise LedgerError(
                f"{_place()}:{number} is damaged; it holds which sealed tasks you have read, so "
                "restore it from a backup"
            ) from None


def _place() -> Path:
    return key_folder() / "opened.jsonl"


def _secret() -> bytes:
    place = key_folder() / "opened.key"
    try:
        write_private(place, secrets.token_hex(32).encode())
    except FileExistsError:
        pass
    except OSError as error:
        raise StorageError(f"cannot write {place}: {error.strerror}") from None
    try:
        return bytes.fromhex(place.read_text("ascii"))
    except ValueError:
        raise LedgerError(
            f"{place} is damaged; without it no opening counts by task, so restore it from a backup"
        ) from None
