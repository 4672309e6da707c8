"""Which blobs and paths hold a token, and so BM25 over any tree without an index of that tree.

A document is a blob at a path; its tokens are those of both. Blobs and paths are kept apart, as
units, so that a tree which shares most of them with the one before costs only what is new.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.arms.builtin.documents import DocumentSet, Versions, join_documents
from coldrun.tasks.arms.builtin.segments import Segment, add_segment, find_all
from coldrun.tasks.arms.builtin.token_cache import TokenCache, TokenCounts, count_hashes

Scores = NDArray[np.float32]

MAXIMUM_ENTRIES = 20_000_000
"""Token counts kept in memory (16 bytes each); beyond, all but the present tree is forgotten."""

_NO_CONTENT = ""


@dataclass(frozen=True, slots=True)
class TreePostings:
    """The token counts of the documents of one tree.

    `contents` and `paths` give each document's two units, `lengths` its number of tokens.
    """

    segments: tuple[Segment, ...]
    units: int
    contents: NDArray[np.int32]
    paths: NDArray[np.int32]
    lengths: NDArray[np.int64]

    def count(self, token: int) -> NDArray[np.int32]:
        """How often each document holds the token with this hash."""
        by_unit = np.zeros(self.units, dtype=np.int32)
        units, counts = find_all(self.segments, np.array([token], dtype=np.uint64))
        by_unit[units] = counts
        return by_unit[self.contents] + by_unit[self.paths]

    def score(self, tokens: Sequence[int], *, k1: float, b: float) -> Scores:
        """The BM25 score of each document, bit for bit as bm25s computes it ("lucene").

        That library scores in double precision, stores single precision, and adds up in the order
        of the query's tokens, repeats included; so does this.
        """
        scores = np.zeros(len(self.lengths), dtype=np.float32)
        if not self.lengths.any():
            return scores
        norms = k1 * ((1 - b) + b * self.lengths / self.lengths.mean())
        for token in tokens:
            counts = self.count(token).astype(np.float32)
            holders = int(np.count_nonzero(counts))
            if holders:
                idf = np.float32(math.log(1 + (len(counts) - holders + 0.5) / (holders + 0.5)))
                held = np.divide(
                    counts, norms + counts, where=counts > 0, out=np.zeros(len(counts))
                )
                scores += (idf * held).astype(np.float32)
        return scores


@dataclass(slots=True)
class _Units:
    """Numbered units with their lengths, and what they hold in segments."""

    numbers: dict[str, int] = field(default_factory=lambda: {_NO_CONTENT: 0})
    lengths: list[int] = field(default_factory=lambda: [0])
    segments: list[Segment] = field(default_factory=list)

    @property
    def entries(self) -> int:
        return sum(segment.size for segment in self.segments)

    def add(self, units: Iterable[tuple[str, TokenCounts]]) -> None:
        new = dict(units)  # read them all before any is known
        if not new:
            return
        first = len(self.lengths)
        self.numbers.update({name: first + offset for offset, name in enumerate(new)})
        self.lengths += [int(tokens.counts.sum()) for tokens in new.values()]
        add_segment(
            self.segments,
            Segment(
                np.concatenate([tokens.hashes for tokens in new.values()]),
                np.repeat(
                    np.arange(first, len(self.lengths), dtype=np.int32),
                    [tokens.hashes.size for tokens in new.values()],
                ),
                np.concatenate([tokens.counts for tokens in new.values()]).astype(np.int32),
            ),
        )


class Postings:
    """Token counts of the blobs and paths seen so far, shared by threads."""

    def __init__(self, cache: TokenCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._units = _Units()
        self._versions = Versions()

    def view(self, sets: Sequence[DocumentSet]) -> TreePostings:
        """The postings of a tree, or of several together; blobs that are new are loaded first.

        Raises:
            RepositoryError: A blob cannot be read.
            StorageError: The token cache cannot be used.
        """
        with self._lock:
            if self._units.entries > MAXIMUM_ENTRIES:
                self._units = _Units()
            units = self._units
            units.add(self._new_units(sets))
            self._versions.see(sets)
            documents = join_documents(sets)
            contents = [units.numbers[each.blob or _NO_CONTENT] for each in documents]
            paths = [units.numbers[_path_unit(each.path)] for each in documents]
            lengths = np.array(units.lengths, dtype=np.int64)
            return TreePostings(
                segments=tuple(units.segments),
                units=len(units.lengths),
                contents=np.array(contents, dtype=np.int32),
                paths=np.array(paths, dtype=np.int32),
                lengths=lengths[contents] + lengths[paths],
            )

    def _new_units(self, sets: Iterable[DocumentSet]) -> Iterator[tuple[str, TokenCounts]]:
        known = self._units.numbers
        for each in sets:
            blobs = [blob for blob in each.blobs if blob not in known]
            if blobs:
                earlier = self._versions.earlier(each, blobs)
                yield from self._cache.load(each.objects, blobs, earlier=earlier).by_blob.items()
            for document in each.documents:
                if _path_unit(document.path) not in known:
                    yield _path_unit(document.path), count_hashes(document.path)


def _path_unit(path: str) -> str:
    """The name of a path's unit; no blob id begins so."""
    return f"path {path}"
