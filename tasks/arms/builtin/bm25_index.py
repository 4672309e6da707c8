"""A BM25 index of one corpus, built by bm25s from cached token counts."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import bm25s
import numpy as np

from coldrun.tasks.arms.builtin.documents import DocumentSet, join_documents
from coldrun.tasks.arms.builtin.postings import Scores
from coldrun.tasks.arms.builtin.token_cache import TokenCache, TokenCounts, count_hashes


class Bm25Index:
    """The documents of a corpus, to be scored many times. Reading it is safe for threads."""

    def __init__(self, sets: Sequence[DocumentSet], cache: TokenCache, *, k1: float, b: float):
        """Load what the documents hold and index it.

        Raises:
            RepositoryError: A blob cannot be read.
            StorageError: The token cache cannot be used.
        """
        self.documents = join_documents(sets)
        loaded = [cache.load(each.objects, each.blobs) for each in sets]
        self.binary = sum(each.binary for each in loaded)
        self.huge = sum(each.huge for each in loaded)
        counts = {blob: tokens for each in loaded for blob, tokens in each.by_blob.items()}
        corpus = _TokenIds(
            [
                (count_hashes(each.path), counts[each.blob] if each.blob else count_hashes(""))
                for each in self.documents
            ]
        )
        self._vocabulary = corpus.vocab
        # bm25s turns its own debug lines on when it is imported
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self._index = bm25s.BM25(method="lucene", k1=k1, b=b, backend="numpy", csc_backend="scipy")
        if self._vocabulary:
            self._index.index(corpus, create_empty_token=False, show_progress=False)

    def score(self, tokens: Sequence[int]) -> Scores:
        """The score of each document for the tokens with these hashes, repeats included."""
        ids = [self._vocabulary[token] for token in tokens if token in self._vocabulary]
        if not ids:
            return np.zeros(len(self.documents), dtype=np.float32)
        scores: Scores = self._index.get_scores_from_ids(ids)
        return scores


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Token numbers by document, each as often as it occurs, made only while one is looked at.

    bm25s wants a list of numbers per document; all at once they would take forty bytes a word.
    """

    numbers: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]]
    counts: Sequence[np.ndarray[tuple[int], np.dtype[np.uint32]]]

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[list[int]]:
        for numbers, counts in zip(self.numbers, self.counts, strict=True):
            yield np.repeat(numbers, counts).tolist()


class _TokenIds:
    """A tokenized corpus in the form that bm25s takes: `ids` by document and the `vocab`."""

    def __init__(self, documents: Sequence[tuple[TokenCounts, TokenCounts]]) -> None:
        parts = [part for document in documents for part in document]
        hashes = [np.empty(0, np.uint64), *(part.hashes for part in parts)]
        distinct, inverse = np.unique(np.concatenate(hashes), return_inverse=True)
        self.vocab = {token: number for number, token in enumerate(distinct.tolist())}
        ends = np.cumsum([path.hashes.size + content.hashes.size for path, content in documents])
        self.ids = _Repeated(
            np.split(inverse, ends[:-1]) if documents else [],
            [np.concatenate([path.counts, content.counts]) for path, content in documents],
        )
