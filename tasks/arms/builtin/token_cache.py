"""Token counts of blobs, kept in the scratch folder by blob id and source of the tokenizer.

A blob never changes, so what it holds is counted once per machine: a second corpus pays for the
blobs that it does not share with the first. Tokens are kept as 64-bit hashes, which need no
vocabulary that two processes would have to agree on; two of a million tokens share a hash with a
probability below one in ten million.
"""

from __future__ import annotations

import hashlib
import inspect
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.arms.builtin import line_changes
from coldrun.tasks.arms.builtin.documents import read_versions
from coldrun.tasks.arms.builtin.line_changes import count_changes
from coldrun.tasks.lib import tokens
from coldrun.tasks.lib.errors import StorageError
from coldrun.tasks.lib.git.object_reader import ObjectReader
from coldrun.tasks.lib.tokens import TOKENIZER_VERSION, count_words, split_words

Item = TypeVar("Item")
Reading = Literal["text", "binary", "huge"]

HUGE_BYTES = 1024 * 1024
"""Larger blobs are data or generated; they are listed, never read."""

COUNTING_MODULES = (tokens, line_changes, sys.modules[__name__])

BINARY_PROBE_BYTES = 8 * 1024

_ROWS_PER_WRITE = 256
_ROWS_PER_READ = 500
_LOCK_TIMEOUT_SECONDS = 120
_SCHEMA = """
CREATE TABLE IF NOT EXISTS blobs (
    id BLOB PRIMARY KEY, reading TEXT NOT NULL, hashes BLOB NOT NULL, counts BLOB NOT NULL
)
"""


class TokenCounts(NamedTuple):
    """What a blob holds: distinct token hashes in ascending order and how often each occurs."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.uint32]


class BlobTokens(NamedTuple):
    """The tokens of one blob, none for a blob that was not read as text."""

    blob: str
    reading: Reading
    tokens: TokenCounts


@cache
def _source_digest() -> str:
    """What decides the counts: an edited tokenizer must not be answered with the old one's."""
    digest = hashlib.sha256()
    for module in COUNTING_MODULES:
        digest.update(Path(inspect.getfile(module)).read_bytes())
    return digest.hexdigest()[:12]


class TokenCache:
    """The token counts of one machine. Threads and processes may use it at the same time."""

    def __init__(self, scratch: Path) -> None:
        self.path = scratch / "tokens" / f"v{TOKENIZER_VERSION}-{_source_digest()}.sqlite3"
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []

    def load(
        self,
        objects: ObjectReader,
        blob_ids: Iterable[str],
        *,
        earlier: Mapping[str, str] | None = None,
    ) -> dict[str, BlobTokens]:
        """The tokens of blobs by id; those not yet known are read, counted and kept.

        A blob with a NUL byte in its first 8 KiB is binary and one over 1 MiB is huge: both
        are counted as such and hold no tokens. Where `earlier` names a known blob that a new one
        is a later version of, only the lines that differ are counted.

        Raises:
            RepositoryError: A blob is missing from the repository.
            StorageError: The cache cannot be read or written.
        """
        wanted = sorted(set(blob_ids))
        with self._connect() as connection:
            rows = {row.blob: row for row in _select(connection, wanted)}
            missing = [blob for blob in wanted if blob not in rows]
            unknown = set(missing)
            versions = {new: old for new, old in (earlier or {}).items() if new in unknown}
            known = {row.blob: row for row in _select(connection, sorted(set(versions.values())))}
            pairs = {new: known[old] for new, old in versions.items() if old in known}
            for batch in _batches(_count_blobs(objects, missing, pairs), _ROWS_PER_WRITE):
                _insert(connection, batch)
                rows.update((row.blob, row) for row in batch)
        return rows

    def close(self) -> None:
        """Close the file. Safe to call twice or while others load; a later load opens it."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """A connection for one thread at a time; opening and closing one costs more than a load."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        try:
            connection = connection or self._open()
            yield connection
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._unusable(error) from error
            raise
        with self._lock:
            self._idle.append(connection)

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        connection = sqlite3.connect(
            self.path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _unusable(self, error: Exception) -> StorageError:
        return StorageError(
            f"the token cache {self.path} cannot be used: {error}; "
            "free space, or delete the file (it is rebuilt when needed)"
        )


def is_binary(content: bytes) -> bool:
    """Whether content is taken for binary: a NUL byte in its first 8 KiB, as git does it."""
    return b"\0" in content[:BINARY_PROBE_BYTES]


def decode_text(content: bytes) -> str:
    """Content as text: UTF-8, where each invalid byte becomes a character no word contains."""
    return content.decode("utf-8", "replace")


@lru_cache(maxsize=1 << 18)
def hash_token(token: str) -> int:
    """The 64-bit hash under which a token is counted."""
    digest = blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def count_hashes(text: str) -> TokenCounts:
    """The token counts of a text."""
    return _as_arrays(split_words(count_words(text)), "<u4")


def update_hashes(tokens: TokenCounts, old: bytes, new: bytes) -> TokenCounts:
    """The token counts of the text `new`, given those of `old`."""
    words = count_changes(old, new, lambda lines: count_words(decode_text(lines)))
    changed = _as_arrays(split_words(words), "<i8")
    hashes = np.union1d(tokens.hashes, changed.hashes)
    counts = np.zeros(hashes.size, dtype=np.int64)
    counts[np.searchsorted(hashes, tokens.hashes)] = tokens.counts
    counts[np.searchsorted(hashes, changed.hashes)] += changed.counts
    return TokenCounts(hashes[counts > 0], counts[counts > 0].astype("<u4"))


def _as_arrays(tokens: Mapping[str, int], kind: str) -> TokenCounts:
    hashes = np.fromiter(map(hash_token, tokens), dtype="<u8", count=len(tokens))
    counts = np.fromiter(tokens.values(), dtype=kind, count=len(tokens))
    order = np.argsort(hashes)
    return TokenCounts(hashes[order], counts[order])


def _count_blobs(
    objects: ObjectReader, blobs: Sequence[str], earlier: Mapping[str, BlobTokens]
) -> Iterator[BlobTokens]:
    """Count blobs; `earlier` has the row of an earlier version of some."""
    nothing = count_hashes("")
    olds = {blob: row.blob for blob, row in earlier.items() if row.reading == "text"}
    for blob, content, old in read_versions(objects, blobs, olds, limit_bytes=HUGE_BYTES):
        if content is None:
            yield BlobTokens(blob, "huge", nothing)
        elif is_binary(content):
            yield BlobTokens(blob, "binary", nothing)
        elif old is not None:
            yield BlobTokens(blob, "text", update_hashes(earlier[blob].tokens, old, content))
        else:
            yield BlobTokens(blob, "text", count_hashes(decode_text(content)))


def _select(connection: sqlite3.Connection, blobs: Sequence[str]) -> Iterator[BlobTokens]:
    for batch in _batches(iter(blobs), _ROWS_PER_READ):
        marks = ",".join("?" * len(batch))
        for blob, reading, hashes, counts in connection.execute(
            f"SELECT id, reading, hashes, counts FROM blobs WHERE id IN ({marks})",  # noqa: S608
            [bytes.fromhex(blob) for blob in batch],
        ):
            tokens = TokenCounts(np.frombuffer(hashes, "<u8"), np.frombuffer(counts, "<u4"))
            yield BlobTokens(blob.hex(), reading, tokens)


def _insert(connection: sqlite3.Connection, rows: Iterable[BlobTokens]) -> None:
    """Keep rows; one that another process has kept meanwhile is the same row."""
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?, ?)",
        [
            (
                bytes.fromhex(row.blob),
                row.reading,
                row.tokens.hashes.tobytes(),
                row.tokens.counts.tobytes(),
            )
            for row in rows
        ],
    )
    connection.execute("COMMIT")


def _batches(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    while batch := list(islice(items, size)):
        yield batch
