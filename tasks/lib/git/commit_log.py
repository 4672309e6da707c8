"""One streaming `git log` for a whole range, read as it arrives.

The stream is a sequence of fields that end in NUL, which neither a message nor a file name can
contain: the fields of a commit in a fixed order, then, for each changed file, the raw line that
begins with a colon and one path, or two for a rename or a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

LOG_FORMAT = "tformat:%H%x00%T%x00%P%x00%ct%x00%an%x00%ae%x00%B"

MESSAGE_OPTIONS = (
    "-z",
    "--no-color",
    "--no-notes",
    "--no-mailmap",
    "--encoding=UTF-8",
    f"--format={LOG_FORMAT}",
)
"""What a log needs to be read for its messages alone."""

LOG_OPTIONS = (
    *MESSAGE_OPTIONS,
    "--raw",
    "--no-abbrev",
    "--root",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--ignore-submodules=none",
)
"""Everything that a user's configuration could change about the output, said explicitly."""

FOLLOW_RENAMES = ("-M50%", "-l0")
IGNORE_RENAMES = ("--no-renames",)


class Change(NamedTuple):
    """One file that a commit changed against its (first) parent.

    `status` is git's letter: A, D, M, T, R or C. `path` is the name after the commit, or the name
    that was removed; `source` is the earlier name, for R and C only. A mode of "160000" is a
    submodule, "120000" a symbolic link, "000000" an absent side.
    """

    status: str
    old_mode: str
    new_mode: str
    path: bytes
    source: bytes | None


class LogEntry(NamedTuple):
    """One commit of a log. `committed` is seconds since 1970 in UTC, by the committer's clock; 0
    where the commit names no time that git can read."""

    commit: str
    tree: str
    parents: tuple[str, ...]
    committed: int
    author_name: str
    author_email: str
    message: bytes
    changes: tuple[Change, ...]


def parse_log(chunks: Iterable[bytes]) -> Iterator[LogEntry]:
    """Read the commits of a log in `LOG_FORMAT` with `LOG_OPTIONS` from pieces of its output."""
    fields = chain.from_iterable(_split_chunks(chunks))
    names: dict[bytes, str] = {}
    modes: dict[bytes, tuple[str, str]] = {}
    make = tuple.__new__  # What the records' own constructors do, without a call in between.
    field = next(fields, b"")
    while field:
        commit = field.decode("ascii")
        tree = next(fields).decode("ascii")
        parents = tuple(next(fields).decode("ascii").split())
        committed = int(next(fields) or 0)
        author_name = _decode_name(next(fields), names)
        author_email = _decode_name(next(fields), names)
        message = next(fields)
        status_at = 17 + 2 * len(commit)
        changes = []
        field = next(fields, b"")
        if field[:2] == b"\n:":
            field = field[1:]
        while field[:1] == b":":
            key = field[1:14]
            pair = modes.get(key)
            if pair is None:
                pair = modes[key] = (key[:6].decode("ascii"), key[7:].decode("ascii"))
            status = chr(field[status_at])
            path = next(fields)
            source = None
            if status in "RC":
                source, path = path, next(fields)
            changes.append(make(Change, (status, *pair, path, source)))
            field = next(fields, b"")
        yield LogEntry(
            commit, tree, parents, committed, author_name, author_email, message, tuple(changes)
        )


def _decode_name(raw_name: bytes, names: dict[bytes, str]) -> str:
    name = names.get(raw_name)
    if name is None:
        name = names[raw_name] = raw_name.decode("utf-8", "replace")
    return name


def _split_chunks(chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest: list[bytes] = []
    for chunk in chunks:
        head, separator, tail = chunk.partition(b"\0")
        rest.append(head)
        if separator:
            fields = tail.split(b"\0")
            first = b"".join(rest)
            rest = [fields.pop()]
            yield [first, *fields]
