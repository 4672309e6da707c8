"""Objects asked for one after another from a single git process: no process per question."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

from tasks.errors import RepositoryError
from tasks.git.command import GitStream, repository_options

_ASKED_AT_ONCE = 100
"""So few requests fit into a pipe whole: git never waits for us while we wait for git."""

_PIECE_BYTES = 1 << 20


class TreeItem(NamedTuple):
    """One entry of a tree object. `mode` is as git prints it, of six digits."""

    mode: str
    name: bytes
    object_id: str


class ObjectReader:
    """A `git cat-file --batch` that answers until it is closed. Threads take turns.

    Raises:
        RepositoryError: git cannot be run.
    """

    def __init__(self, git_dir: Path, *, hex_length: int = 40) -> None:
        self.git_dir = git_dir
        self._raw_length = hex_length // 2
        self._lock = threading.Lock()
        self._stream = _Dialogue(
            [*repository_options(git_dir, hex_length), "cat-file", "--batch"], directory=git_dir
        )

    def read_tree(self, name: str) -> tuple[TreeItem, ...]:
        """The entries of a tree object, named by its id or by that of a commit.

        Raises:
            RepositoryError: There is no such object.
        """
        ((_, content),) = self._ask([f"{name}^{{tree}}"], None)
        return tuple(self._parse_tree(content or b""))

    def read_blobs(
        self, ids: Iterable[str], *, limit_bytes: int | None = None
    ) -> Iterator[tuple[str, bytes | None]]:
        """The contents of blobs in the order of `ids`, None for one above the limit.

        Raises:
            RepositoryError: An object is missing.
        """
        wanted = list(ids)
        for start in range(0, len(wanted), _ASKED_AT_ONCE):
            yield from self._ask(wanted[start : start + _ASKED_AT_ONCE], limit_bytes)

    def close(self) -> None:
        """End the process. Safe to call twice; nothing can be read afterwards."""
        with self._lock:
            self._stream.close()

    def _ask(self, names: Sequence[str], limit_bytes: int | None) -> list[tuple[str, bytes | None]]:
        with self._lock:
            try:
                self._stream.send("".join(f"{name}\n" for name in names).encode("ascii"))
                answers = [(name, *self._receive(limit_bytes)) for name in names]
            except (OSError, ValueError) as error:
                raise RepositoryError(
                    f"git cat-file ended in {self.git_dir}: {self._stream.complaint or error}"
                ) from error
        missing = [name for name, is_there, _ in answers if not is_there]
        if missing:  # said only now: answers left unread would be taken for later ones
            raise RepositoryError(
                f"object {missing[0]} is missing from {self.git_dir}; "
                "run `git fsck` and fetch it again"
            )
        return [(name, content) for name, _, content in answers]

    def _receive(self, limit_bytes: int | None) -> tuple[bool, bytes | None]:
        """Whether the object is there, and its content unless that is above the limit."""
        line = self._stream.stdout.readline()
        if not line:
            raise ValueError("it gave no answer")
        header = line.split()
        if len(header) != 3:
            return False, None
        size = int(header[2])
        content = None
        if limit_bytes is None or size <= limit_bytes:
            content = self._stream.stdout.read(size)
        else:
            for start in range(0, size, _PIECE_BYTES):
                self._stream.stdout.read(min(_PIECE_BYTES, size - start))
        self._stream.stdout.read(1)
        return True, content

    def _parse_tree(self, content: bytes) -> Iterator[TreeItem]:
        position = 0
        while position < len(content):
            space = content.index(b" ", position)
            end = content.index(b"\0", space)
            next_position = end + 1 + self._raw_length
            yield TreeItem(
                content[position:space].decode("ascii").zfill(6),
                content[space + 1 : end],
                content[end + 1 : next_position].hex(),
            )
            position = next_position


class _Dialogue(GitStream):
    """A git process that is written to piece by piece."""

    def __init__(self, arguments: Sequence[str], *, directory: Path) -> None:
        super().__init__(arguments, directory=directory, stdin=())

    def send(self, piece: bytes) -> None:
        pipe = cast("IO[bytes]", self._process.stdin)
        pipe.write(piece)
        pipe.flush()

    def _feed(self, pieces: Iterable[bytes]) -> None:
        """Nothing is fed ahead, and the pipe stays open for `send`."""
