"""What the scratch folder holds that can be made again: how much, how old, and its removal.

The warehouse is never looked at. Runs of any warehouse hold a lock in the scratch folder while they
are written, because their clones, corpora and caches must stay.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.arms.workspace.isolation import prune_sessions
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.machine.file_locks import IN_USE, try_lock
from coldrun.tasks.lib.machine.files import remove_folder
from coldrun.tasks.product.points import prune_points

DAY_SECONDS = 86_400.0

KINDS = {
    "sessions": "folders of sessions whose run is dead",
    "holdout": "private warehouses of openings that were killed",
    "points": "checkouts of products, with what their set-up installed",
    "corpora": "searched trees, written out",
    "clones": "clones of repositories by URL",
    "tokens": "token counts of blobs",
    "mined": "tasks that `try` mined",
    "try": "configurations that `try` wrote",
}
"""What is pruned, in this order; nothing else in the scratch folder is touched."""

ANY_AGE = ("sessions", "holdout")
"""Left behind by programs that are gone: of no use at any age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prunable:
    """One thing that can be removed. `path` is relative to the scratch folder."""

    kind: str
    path: str
    size_bytes: int
    age_days: float

    def to_values(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def find_prunable(scratch: Path, *, unused_for_days: float) -> list[Prunable]:
    """What can be removed: things that were not touched for a time, and what dead programs left.

    Sessions and openings that are alive, and checkouts in use, are not listed.
    """
    scratch = scratch.resolve()
    now = time.time()
    found = []
    for kind in KINDS:
        for path in sorted(_entries(scratch, kind)):
            size, touched = _measure(path)
            age_days = max(0.0, (now - touched) / DAY_SECONDS)
            if kind in ANY_AGE or age_days >= unused_for_days:
                name = path.relative_to(scratch).as_posix()
                found.append(Prunable(kind=kind, path=name, size_bytes=size, age_days=age_days))
    return found


def prune(scratch: Path, found: list[Prunable], *, unused_for_days: float) -> list[Prunable]:
    """Remove what was found, and return what is gone."""
    scratch = scratch.resolve()
    kinds = {entry.kind for entry in found}
    if "sessions" in kinds:
        prune_sessions(scratch)
    if "points" in kinds:
        prune_points(scratch, unused_for_seconds=unused_for_days * DAY_SECONDS)
    for entry in found:
        if entry.kind not in ("sessions", "points"):
            _remove(scratch / entry.path)
    return [entry for entry in found if not os.path.lexists(scratch / entry.path)]


@contextmanager
def hold_unused(warehouse: Path, scratch: Path) -> Iterator[None]:
    """Keep runs from starting below a block that prunes, whichever warehouse they write.

    Raises:
        UsageError: A run is under way, or the warehouse lies where things are pruned.
    """
    for kind in KINDS:
        if warehouse.resolve().is_relative_to(scratch.resolve() / kind):
            raise UsageError(
                f"the warehouse {warehouse} lies in the scratch folder's {kind}, where things are "
                "removed; move it, or name another scratch folder with --scratch"
            )
    lock = try_lock(scratch / IN_USE)
    if lock is None:
        raise UsageError(
            f"a run is being written and needs its clones and caches in {scratch}; wait for it or "
            "stop it"
        )
    try:
        yield
    finally:
        lock.release()


def _entries(scratch: Path, kind: str) -> Iterator[Path]:
    folder = scratch / kind
    finders: dict[str, Callable[[Path], Iterator[Path]]] = {
        "sessions": lambda root: _unlocked(root.glob("*/*/"), ".lock"),
        "holdout": lambda root: _unlocked(root.glob("opening-*/"), ".lock"),
        "points": lambda root: _unlocked(root.glob("*/"), ".use"),
        "corpora": lambda root: root.glob("*/"),
        "clones": lambda root: root.glob("*/"),
        "tokens": lambda root: root.glob("*"),
        "mined": lambda root: root.glob("*"),
        "try": lambda root: root.glob("*/"),
    }
    if folder.is_dir() and not folder.is_symlink():
        yield from finders[kind](folder)


def _unlocked(folders: Iterator[Path], suffix: str) -> Iterator[Path]:
    """Folders whose lock nobody holds."""
    for folder in folders:
        path = folder.with_suffix(suffix)
        if not path.exists():
            yield folder
            continue
        lock = try_lock(path)
        if lock is not None:
            lock.release()
            yield folder


def _measure(path: Path) -> tuple[int, float]:
    """The bytes below a path, and when it was last used as far as its own times tell."""
    use = path.with_suffix(".use")
    touched = [found.stat().st_mtime for found in (path, use) if found.exists()]
    size = 0
    with contextlib.suppress(OSError):
        if path.is_file():
            return path.stat().st_size, max(touched)
        for root, _, names in os.walk(path):
            for name in names:
                with contextlib.suppress(OSError):
                    size += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118
        for name in ("FETCH_HEAD", "HEAD", "packed-refs"):  # a clone that was fetched since
            with contextlib.suppress(OSError):
                touched.append((path / name).stat().st_mtime)
    return size, max(touched, default=0.0)


def _remove(path: Path) -> None:
    """Remove a file or folder, with its stamp and lock, the stamp first: without it all is void."""
    for beside in (".complete", ".lock"):
        if beside != path.suffix:
            path.with_suffix(beside).unlink(missing_ok=True)
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)
