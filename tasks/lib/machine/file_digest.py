"""Digests of files and folders, by content and name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.errors import ConfigError

BYTECODE_FOLDER = "__pycache__"


def digest_path(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder's files with their names, bytecode left out.

    Links are followed, to files and to folders, as a program that opens them does; one that leads
    nowhere counts as its text. Executable bits count.

    Raises:
        ConfigError: Links to folders go round in a circle.
    """
    digest = hashlib.sha256()
    if not path.is_dir():
        _feed_file(digest, path)
        return digest.hexdigest()
    for name, file in sorted(_walk(path, "", (os.path.realpath(path),))):
        digest.update(f"{len(name.encode('utf-8', 'surrogateescape'))}:".encode("ascii"))
        digest.update(name.encode("utf-8", "surrogateescape"))
        inner = hashlib.sha256()
        _feed_file(inner, file)
        digest.update(inner.digest())
    return digest.hexdigest()


def _walk(folder: Path, prefix: str, above: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        if not entry.is_dir():
            yield prefix + entry.name, Path(entry.path)
        elif entry.name != BYTECODE_FOLDER:
            place = os.path.realpath(entry.path)
            if place in above:
                raise ConfigError(
                    f"the link {entry.path} leads round in a circle, to a folder that it lies in; "
                    "declare folders without such links"
                )
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/", (*above, place))


def _feed_file(digest: Any, path: Path) -> None:
    try:
        with path.open("rb") as file:
            digest.update(b"x" if os.access(path, os.X_OK) else b"-")
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except (FileNotFoundError, IsADirectoryError):
        digest.update(b"link:" + os.fsencode(os.readlink(path)))  # noqa: PTH115
