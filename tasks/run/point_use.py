"""What sessions do in a point's checkout: entered under a lock, swept before, looked at after."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tasks.arms.base import Point
from tasks.errors import RepositoryError
from tasks.git.checkout import list_changed, list_untracked, verify_head
from tasks.run.locks import FileLock, take_lock, try_lock
from tasks.run.scratch import remove_folder

NAMED_FILES = 5


def read_stamp(place: Path) -> dict[str, Any] | None:
    """What the completion stamp of a point says; None when there is none, or no whole one."""
    try:
        value = json.loads((place / "point.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def inspect_checkout(checkout: Path, commit: str) -> tuple[str, ...]:
    """What is not as it was checked out: `HEAD`, or tracked files; empty when all is."""
    problems = []
    try:
        verify_head(checkout, commit)
        changed = list_changed(checkout)
    except RepositoryError as error:
        return (f"broke the repository of the checkout: {error}",)
    if changed:
        problems.append(f"changed tracked files of the product: {_name_files(changed)}")
    return tuple(problems)


def list_additions(point: Point) -> tuple[str, ...]:
    """Files in a point's checkout that are there since its set-up, bytecode left out, sorted."""
    stamp = read_stamp(point.directory.parent)
    if stamp is None:
        return ()
    known = {os.fsdecode(bytes.fromhex(name)) for name in stamp.get("untracked", ())}
    return tuple(
        path
        for path in list_untracked(point.directory)
        if path not in known and "__pycache__" not in path.split("/")
    )


def use_point(point: Point) -> FileLock | None:
    """Enter a point's checkout for a session; hold the lock until the session ends.

    When no other session is in it, what earlier ones left there is removed first: a product that
    caches answers in its own folder would otherwise hand them on.

    Returns:
        The lock; None when the checkout was not made by `prepare_point`.
    """
    place = point.directory.parent
    if read_stamp(place) is None:
        return None
    sweep_when_free(place)
    return take_lock(place.with_suffix(".use"), is_shared=True)


def describe_use(point: Point) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What sessions did to a point's checkout: (reasons that make the run invalid, warnings)."""
    if read_stamp(point.directory.parent) is None:
        return (), ()
    invalid = tuple(
        f"a session {problem}" for problem in inspect_checkout(point.directory, point.commit)
    )
    added = list_additions(point)
    warnings = (f"wrote {_name_files(added)} into the product's checkout",) if added else ()
    return invalid, warnings


def sweep_when_free(place: Path) -> None:
    """Remove what sessions left in a point's checkout, unless a session is in it now."""
    lock = try_lock(place.with_suffix(".use"))
    if lock is None:
        return
    try:
        checkout = place / "checkout"
        point = Point(repo="", directory=checkout, commit="", tree="")
        for name in list_additions(point):
            found = checkout / name
            if found.is_dir() and not found.is_symlink():
                remove_folder(found)
            else:
                found.unlink(missing_ok=True)
    finally:
        lock.release()


def _name_files(paths: tuple[str, ...]) -> str:
    named = ", ".join(paths[:NAMED_FILES])
    more = len(paths) - NAMED_FILES
    return f"{named} and {more} more" if more > 0 else named
