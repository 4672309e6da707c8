"""Objects asked for one after another from a single git process: no process per question."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.git_command import GitStream, repository_options

_ASKED_AT_ONCE = 25
"""Few enough that all requests fit into a pipe, so that git never waits for us while we wait for
git, and that their answers fit into memory."""

_PIECE_BYTES = 1 << 20


class TreeItem(NamedTuple):
    """One entry of a tree object. `mode` is as git prints it, of six digits."""

    mode: str
    name: bytes
    object_id: str


class ObjectReader:
    """A `git cat-file --batch` that answers until it is closed. Threads take turns.

    Sessions may share a reader: the process starts with the first question, and again when
    something is asked after it was closed or died.

    Args:
        git_dir: The repository.
        hex_length: Of its object ids: 40 or 64.
        remember_bytes: How many bytes of blobs to keep in memory, the latest ones.
    """

    def __init__(self, git_dir: Path, *, hex_length: int = 40, remember_bytes: int = 0) -> None:
        self.git_dir = git_dir
        self._raw_length = hex_length // 2
        self._lock = threading.Lock()
        self._options = (*repository_options(git_dir, hex_length), "cat-file", "--batch")
        self._stream: _Dialogue | None = None
        self._recent = _RecentBlobs(remember_bytes)

    def read_tree(self, name: str) -> tuple[TreeItem, ...]:
        """The entries of a tree object, named by its id or by that of a commit."""
        ((_, content),) = self._ask([f"{name}^{{tree}}"], None)
        return tuple(self._parse_tree(content or b""))

    def read_blobs(
        self, ids: Iterable[str], *, limit_bytes: int | None = None
    ) -> Iterator[tuple[str, bytes | None]]:
        """The contents of blobs in the order of `ids`, None for one above the limit."""
        wanted = list(ids)
        for start in range(0, len(wanted), _ASKED_AT_ONCE):
            batch = wanted[start : start + _ASKED_AT_ONCE]
            known = self._recent.find(batch, limit_bytes)
            read = dict(self._ask([name for name in batch if name not in known], limit_bytes))
            self._recent.keep(read)
            yield from ((name, known[name] if name in known else read[name]) for name in batch)

    def close(self) -> None:
        """End the process. Safe to call twice; a later question starts another."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None

    def _ask(self, names: Sequence[str], limit_bytes: int | None) -> list[tuple[str, bytes | None]]:
        if not names:
            return []
        with self._lock:
            if self._stream is None:
                self._stream = _Dialogue(self._options, directory=self.git_dir)
            stream = self._stream
            try:
                stream.send("".join(f"{name}\n" for name in names).encode("ascii"))
                answers = [(name, *_receive(stream.stdout, limit_bytes)) for name in names]
            except (OSError, ValueError) as error:
                self._end()
                raise RepositoryError(
                    f"git cat-file ended in {self.git_dir}: {stream.complaint or error}"
                ) from error
        missing = [name for name, is_there, _ in answers if not is_there]
        if missing:  # said only now: answers left unread would be taken for later ones
            raise RepositoryError(
                f"object {missing[0]} is missing from {self.git_dir}; "
                "run `git fsck` and fetch it again"
            )
        return [(name, content) for name, _, content in answers]

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


def _receive(pipe: io.BufferedReader, limit_bytes: int | None) -> tuple[bool, bytes | None]:
    line = pipe.readline()
    if not line:
        raise ValueError("it gave no answer")
    header = line.split()
    if len(header) != 3:
        return False, None
    size = int(header[2])
    content = None
    if limit_bytes is None or size <= limit_bytes:
        content = pipe.read(size)
    else:
        for start in range(0, size, _PIECE_BYTES):
            pipe.read(min(_PIECE_BYTES, size - start))
    pipe.read(1)
    return True, content


class _RecentBlobs:
    """The blobs that were read last, up to a number of bytes."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._size = 0
        self._lock = threading.Lock()
        self._contents: OrderedDict[str, bytes] = OrderedDict()

    def find(self, names: Iterable[str], limit_bytes: int | None) -> dict[str, bytes]:
        with self._lock:
            known = {name: self._contents[name] for name in names if name in self._contents}
            for name in known:
                self._contents.move_to_end(name)
        return {
            name: content
            for name, content in known.items()
            if limit_bytes is None or len(content) <= limit_bytes
        }

    def keep(self, blobs: Mapping[str, bytes | None]) -> None:
        with self._lock:
            for name, content in blobs.items():
                if content is not None and name not in self._contents:
                    self._contents[name] = content
                    self._size += len(content)
            while self._size > self._capacity:
                self._size -= len(self._contents.popitem(last=False)[1])


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
