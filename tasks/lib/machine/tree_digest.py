"""Digests of whole trees that sessions are shown, remembered as long as no file changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.canonical import digest_json
from coldrun.tasks.lib.errors import StorageError
from coldrun.tasks.lib.machine.files import BYTECODE_FOLDER, digest_path, feed_file, write_whole
from coldrun.tasks.lib.safe_json import load_record

PACKAGE_FOLDERS = ("site-packages", "dist-packages", "node_modules")

_known: dict[tuple[str, tuple[str, ...]], tuple[str, str]] = {}
"""The state and digest of every tree that this process has read."""


def digest_tree(path: Path, *, kept_in: Path | None = None, without: Sequence[str] = ()) -> str:
    """SHA-256 of all that a mounted file or folder shows: names, links as such, modes, contents.

    `without` are folders that are hidden in it. Bytecode counts beside packages, and not in a
    standard library, where any run of the interpreter writes it. Contents are read again when a
    file's inode, size, mode or change time differ from what `kept_in` remembers.
    """
    if not path.is_dir():
        return digest_path(path)
    entries = sorted(_list_tree(os.fspath(path), "", frozenset(without), has_packages=False))
    state = digest_json([[os.fsencode(name).hex(), *rest] for name, *rest in entries])
    key = (str(path), tuple(sorted(without)))
    name = f"{hashlib.sha256(repr(key).encode()).hexdigest()[:40]}.json"
    record = None if kept_in is None else kept_in / name
    if key not in _known and record is not None:
        with contextlib.suppress(OSError, ValueError):
            _known[key] = load_record(record.read_bytes(), tuple[str, str])
    if _known.get(key, ("", ""))[0] == state:
        return _known[key][1]
    digest = hashlib.sha256()
    for name, kind, *rest in entries:
        digest.update(f"{len(os.fsencode(name))}:".encode("ascii"))
        digest.update(os.fsencode(name))
        if kind == "link":
            digest.update(b"link:" + os.fsencode(rest[0]))
        else:
            inner = hashlib.sha256()
            with contextlib.suppress(PermissionError, FileNotFoundError):
                feed_file(inner, path / name)
            digest.update(inner.digest())
    _known[key] = (state, digest.hexdigest())
    if record is not None:
        with contextlib.suppress(OSError, StorageError):
            record.parent.mkdir(parents=True, exist_ok=True)
            write_whole(record, json.dumps(_known[key]).encode())
    return _known[key][1]


def _list_tree(
    folder: str, prefix: str, without: frozenset[str], *, has_packages: bool
) -> Iterator[tuple[Any, ...]]:
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except PermissionError:
        return
    for entry in entries:
        name = prefix + entry.name
        if entry.is_symlink():
            yield name, "link", os.readlink(entry.path)  # noqa: PTH115
        elif entry.is_dir(follow_symlinks=False):
            beside_packages = has_packages or entry.name in PACKAGE_FOLDERS
            if entry.path not in without and (beside_packages or entry.name != BYTECODE_FOLDER):
                yield from _list_tree(entry.path, f"{name}/", without, has_packages=beside_packages)
        elif entry.is_file(follow_symlinks=False):
            state = entry.stat(follow_symlinks=False)
            yield name, "file", state.st_ino, state.st_size, state.st_mode, state.st_ctime_ns
