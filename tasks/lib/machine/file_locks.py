"""Advisory file locks between threads, processes and runs; the kernel drops a dead owner's."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coldrun.tasks.lib.errors import StorageError

IN_USE = "in-use.lock"
"""In a scratch folder: held, shared, by every run that uses it."""


class FileLock:
    """A lock held on a file through one open descriptor, until `release` or the owner's end."""

    def __init__(self, descriptor: int) -> None:
        """Take over an open, locked descriptor; use `take_lock` or `try_lock`."""
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Give the lock back. Safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def take_lock(path: Path, *, is_shared: bool = False) -> FileLock:
    """Wait for the lock on `path` and hold it. The file is made when it is missing."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return FileLock(descriptor)


def try_lock(path: Path) -> FileLock | None:
    """The exclusive lock on `path`, or None when it is held."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return FileLock(descriptor)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the exclusive lock on `path` for a block."""
    lock = take_lock(path)
    try:
        yield
    finally:
        lock.release()


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StorageError(
            f"cannot use the lock file {path}: {error.strerror}; "
            "choose a scratch folder that can be written with --scratch"
        ) from error
