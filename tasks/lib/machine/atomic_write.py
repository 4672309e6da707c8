"""Files written whole: a reader sees all of a file, or what was there before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from coldrun.tasks.lib.errors import StorageError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or what was there before.

    Raises:
        StorageError: The folder cannot be written.
    """
    write_together({path: data})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files in their order, and none of them unless there is room for all.

    Raises:
        StorageError: A folder cannot be written; the files are as they were.
    """
    temporaries = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in contents}
    path = next(iter(contents))
    try:
        try:
            for path, data in contents.items():
                temporaries[path].write_bytes(data)
            for path, temporary in temporaries.items():
                temporary.replace(path)
        finally:
            for temporary in temporaries.values():
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}; free some room or choose a writable folder"
        ) from None
