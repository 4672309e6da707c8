"""The search control: BM25 over identifier-aware tokens of paths and contents.

One index per corpus, built by bm25s. A task with a base of its own is scored over that tree
without an index: only the query's tokens are looked up, by the same formula to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.arms.builtin.bm25_index import Bm25Index
from coldrun.tasks.arms.builtin.builtin_session import Hit, begin_session, describe_unread
from coldrun.tasks.arms.builtin.documents import (
    CorpusReader,
    Document,
    join_documents,
    share_reader,
)
from coldrun.tasks.arms.builtin.index_store import IndexStore, process_store
from coldrun.tasks.arms.builtin.postings import Postings, Scores
from coldrun.tasks.arms.builtin.token_cache import TokenCache, hash_token
from coldrun.tasks.arms.builtin.tokens import tokenize
from coldrun.tasks.config import Bm25Arm
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import Question


def open_bm25_session(context: SessionContext, store: IndexStore | None = None) -> Session:
    """Open a session of a `bm25` arm: read the corpus from git and index it.

    Sessions that share a `store` (by default that of the process) share the index of a corpus.

    Raises:
        ConfigError: The arm is of another kind.
        RepositoryError: The corpus cannot be read.
        StorageError: The token cache cannot be used.
    """
    if not isinstance(context.arm, Bm25Arm):
        raise ConfigError(f"arm {context.arm.name!r} is not of kind bm25")
    opened_at = time.perf_counter()
    store = store or process_store()
    reader = share_reader(context.corpus, store)
    indexed_at = time.perf_counter()
    searcher = Bm25Searcher(context.arm, reader, store, context)
    return begin_session(searcher, opened_at=opened_at, indexed_at=indexed_at)


class Bm25Searcher:
    """Ranks the files of a corpus, or of a question's own base, by BM25."""

    def __init__(
        self,
        arm: Bm25Arm,
        reader: CorpusReader,
        store: IndexStore,
        context: SessionContext,
    ) -> None:
        scratch = context.scratch
        cache = store.get(("token cache", scratch), lambda: TokenCache(scratch))
        self._cache = cache
        self._arm = arm
        self._reader = reader
        self.tree_names = reader.tree_names
        self._postings = store.get(("postings", scratch, *reader.git_dirs), lambda: Postings(cache))
        self._index: Bm25Index | None = None
        self.log = "a tree for each question"
        if not context.corpus.is_per_task:
            trees = tuple(
                (name, str(tree.git_dir), tree.tree)
                for name, tree in sorted(context.corpus.trees.items())
            )
            self._index = store.get(
                ("bm25", scratch, arm.k1, arm.b, trees),
                lambda: Bm25Index(reader.list_trees(), cache, k1=arm.k1, b=arm.b),
            )
            self.log = describe_unread(
                len(self._index.documents), self._index.binary, self._index.huge
            )

    def search(self, question: Question) -> Iterator[Hit]:
        """The files with a score, best first; equal scores by tree and path."""
        tokens = [hash_token(token) for token in tokenize(question.query)]
        if question.base is None and self._index is not None:
            return _rank(self._index.score(tokens), self._index.documents)
        sets = self._reader.list_base(question.base) if question.base else self._reader.list_trees()
        view = self._postings.view(sets)
        scores = view.score(tokens, k1=self._arm.k1, b=self._arm.b)
        return _rank(scores, join_documents(sets))

    def close(self) -> None:
        """Let go of the repositories and the token cache. Safe to call twice."""
        self._reader.close()
        self._cache.close()


def _rank(scores: Scores, documents: Sequence[Document]) -> Iterator[Hit]:
    """Documents with a score above 0; they come by tree and path, so a stable sort keeps that."""
    found = np.flatnonzero(scores > 0)
    for index in found[np.argsort(-scores[found], kind="stable")].tolist():
        yield Hit(documents[index].tree, documents[index].path, float(scores[index]))
