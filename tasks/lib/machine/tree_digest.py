"""Digests of whole trees that sessions are shown, remembered as long as no file changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from coldrun.tasks.lib.canonical import digest_json
from coldrun.tasks.lib.errors import StorageError
from coldrun.tasks.lib.machine.files import BYTECODE_FOLDER, digest_path, feed_file, write_whole
from coldrun.tasks.lib.safe_json import load_record

PACKAGE_FOLDERS = frozenset(("site-packages", "dist-packages", "node_modules"))

FILES_AND_LINKS = (stat.S_IFREG, stat.S_IFLNK)

_known: dict[tuple[str, tuple[str, ...]], tuple[str, str]] = {}
"""The state and digest of every tree that this process has read."""


class FileState(NamedTuple):
    """What tells an untouched file from a touched one without reading it.

    Content cannot change without `changed_ns`, which no ordinary program can set back.
    """

    inode: int
    size: int
    mode: int
    changed_ns: int


def list_states(
    folder: Path, is_shown: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, FileState]]:
    """Every file and link below a folder with its state, by relative path.

    Folders that may not be read are left out, and those whose path is not `is_shown`.
    """
    top = os.fspath(folder)
    pending = [top]
    while pending:
        with (
            contextlib.suppress(FileNotFoundError, PermissionError),
            os.scandir(pending.pop()) as entries,
        ):
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    state = FileState(found.st_ino, found.st_size, found.st_mode, found.st_ctime_ns)
                    yield entry.path[len(top) + 1 :], state
                elif is_shown(entry.path):
                    pending.append(entry.path)


def digest_states(states: Iterable[tuple[str, FileState]]) -> str:
    """One digest over the states of many files, in the order of their paths."""
    return digest_json([[os.fsencode(path).hex(), *state] for path, state in sorted(states)])


def digest_tree(path: Path, *, kept_in: Path | None = None, without: Sequence[str] = ()) -> str:
    """SHA-256 of all that a mounted file or folder shows: names, links as such, modes, contents.

    `without` are folders that are hidden in it. Bytecode counts beside packages, and not in a
    standard library, where any run of the interpreter writes it. Contents are read again when a
    file's inode, size, mode or change time differ from what `kept_in` remembers.
    """
    if not path.is_dir():
        return digest_path(path)
    top = os.fspath(path)

    def is_shown(place: str) -> bool:
        parts = place.removeprefix(top).split("/")
        is_bytecode = parts[-1] == BYTECODE_FOLDER and PACKAGE_FOLDERS.isdisjoint(parts)
        return place not in without and not is_bytecode

    listed = list_states(path, is_shown)
    entries = sorted(each for each in listed if stat.S_IFMT(each[1].mode) in FILES_AND_LINKS)
    state = digest_states(entries)
    key = (str(path), tuple(sorted(without)))
    name = f"{hashlib.sha256(repr(key).encode()).hexdigest()[:40]}.json"
    record = None if kept_in is None else kept_in / name
    if key not in _known and record is not None:
        with contextlib.suppress(OSError, ValueError):
            _known[key] = load_record(record.read_bytes(), tuple[str, str])
    if _known.get(key, ("", ""))[0] == state:
        return _known[key][1]
    digest = hashlib.sha256()
    for name, found in entries:
        digest.update(f"{len(os.fsencode(name))}:".encode("ascii"))
        digest.update(os.fsencode(name))
        if stat.S_ISLNK(found.mode):
            digest.update(b"link:" + os.fsencode((path / name).readlink()))
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
