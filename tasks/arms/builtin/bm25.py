"""The search control: BM25 over identifier-aware tokens of paths and contents.

A document is a blob at a path, which are two fields with statistics of their own: a file's score is
that of its content, and `path_weight` times that of its path. No tree has an index of its own: the
query's tokens are looked up in the counts of all blobs and paths seen so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.arms.builtin.builtin_session import Hit
from coldrun.tasks.arms.builtin.documents import DocumentSet
from coldrun.tasks.arms.builtin.token_cache import TokenCache, count_hashes, hash_token
from coldrun.tasks.arms.builtin.unit_counts import (
    OpenDocuments,
    Segment,
    UnitStore,
    find_all,
)
from coldrun.tasks.lib.tokens import tokenize

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Tree:
    """One tree, or several together, ready to be searched.

    `contents` and `paths` give each document's two units, `lengths` every unit's number of tokens.
    """

    documents: OpenDocuments
    segments: tuple[Segment, ...]
    total_units: int
    contents: NDArray[np.int32]
    paths: NDArray[np.int32]
    lengths: NDArray[np.int64]
    k1: float
    b: float
    path_weight: float

    def search(self, query: str) -> Iterator[Hit]:
        """The files with a score, best first; equal scores by tree and path."""
        tokens = [hash_token(token) for token in tokenize(query)]
        scores = self.score(tokens, self.contents)
        if self.path_weight:
            scores += self.path_weight * self.score(tokens, self.paths)
        found = np.flatnonzero(scores > 0)
        for index in found[np.argsort(-scores[found], kind="stable")].tolist():
            document = self.documents.files[index]
            yield Hit(document.tree, document.path, float(scores[index]))

    def score(self, tokens: Sequence[int], units: NDArray[np.int32]) -> Scores:
        """The score of each document by its units of one field, bit for bit as bm25s computes it
        ("lucene").

        That library scores in double precision, stores single precision, and adds up in the order
        of the query's tokens, repeats included; so does this.
        """
        scores = np.zeros(len(units), dtype=np.float32)
        lengths = self.lengths[units]
        if not lengths.any():
            return scores
        norms = self.k1 * ((1 - self.b) + self.b * lengths / lengths.mean())
        for token in tokens:
            counts = self._count(token)[units]
            held = np.flatnonzero(counts)
            if held.size:
                idf = np.float32(math.log(1 + (len(counts) - held.size + 0.5) / (held.size + 0.5)))
                times = counts[held].astype(np.float32)
                scores[held] += (idf * (times / (norms[held] + times))).astype(np.float32)
        return scores

    def _count(self, token: int) -> NDArray[np.int32]:
        """How often each unit holds the token with this hash."""
        by_unit = np.zeros(self.total_units, dtype=np.int32)
        units, counts, _ = find_all(self.segments, np.array([token], dtype=np.uint64))
        by_unit[units] = counts
        return by_unit


class Bm25Store(UnitStore):
    """Token counts of the blobs and paths seen so far."""

    def __init__(self, cache: TokenCache) -> None:
        super().__init__()
        self._cache = cache

    def open_tree(
        self, sets: Sequence[DocumentSet], *, k1: float, b: float, path_weight: float
    ) -> Bm25Tree:
        """Make a tree searchable, or several together; blobs that are new are loaded first.

        Raises:
            RepositoryError: A blob cannot be read.
            StorageError: The token cache cannot be used.
        """
        with self._hold(sets) as documents:
            units = self._units
            contents = [units.numbers[each.blob or ""] for each in documents.files]
            paths = [units.numbers[_path_unit(each.path)] for each in documents.files]
            return Bm25Tree(
                documents=documents,
                segments=tuple(units.segments),
                total_units=len(units.lengths),
                contents=np.array(contents, dtype=np.int32),
                paths=np.array(paths, dtype=np.int32),
                lengths=np.array(units.lengths, dtype=np.int64),
                k1=k1,
                b=b,
                path_weight=path_weight,
            )

    def close(self) -> None:
        """Close the token cache. Safe to call twice."""
        self._cache.close()

    def _add(self, each: DocumentSet) -> None:
        known = self._units.numbers
        new = {}
        blobs = [blob for blob in each.blobs if blob not in known]
        if blobs:
            earlier = self._versions.earlier(each, blobs)
            for blob, read in self._cache.load(each.objects, blobs, earlier=earlier).items():
                new[blob] = (read.tokens.hashes, read.tokens.counts)
                self._readings[blob] = read.reading
        for document in each.documents:
            name = _path_unit(document.path)
            if name not in known and name not in new:
                tokens = count_hashes(document.path)
                new[name] = (tokens.hashes, tokens.counts)
        self._units.add(new)


def _path_unit(path: str) -> str:
    """The name of a path's unit; no blob id begins like this."""
    return f"path {path}"
