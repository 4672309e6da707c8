"""The floor: which files hold most of the query's words, as substrings, whatever their case."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import numpy as np

from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.arms.builtin.builtin_session import Hit, begin_session, describe_unread
from coldrun.tasks.arms.builtin.documents import CorpusReader, join_documents, share_reader
from coldrun.tasks.arms.builtin.index_store import IndexStore, process_store
from coldrun.tasks.arms.builtin.word_store import WordStore
from coldrun.tasks.arms.stop_words import STOP_WORDS
from coldrun.tasks.config import GrepArm
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import Question

MINIMUM_LENGTH = 3

_WORD = re.compile(r"\w+")


def open_grep_session(context: SessionContext, store: IndexStore | None = None) -> Session:
    """Open a session of a `grep` arm: read the corpus from git.

    Sessions that share a `store` (by default that of the process) read a corpus once.

    Raises:
        ConfigError: The arm is of another kind.
        RepositoryError: The corpus cannot be read.
    """
    if not isinstance(context.arm, GrepArm):
        raise ConfigError(f"arm {context.arm.name!r} is not of kind grep")
    opened_at = time.perf_counter()
    store = store or process_store()
    reader = share_reader(context.corpus, store)
    indexed_at = time.perf_counter()
    words = store.get(("grep", *reader.git_dirs), WordStore)
    return begin_session(GrepSearcher(reader, words), opened_at=opened_at, indexed_at=indexed_at)


class GrepSearcher:
    """Ranks files by how many distinct words of the query they hold, then by how often."""

    def __init__(self, reader: CorpusReader, words: WordStore) -> None:
        self._reader = reader
        self._words = words
        self._sets = reader.list_trees()
        self._documents = join_documents(self._sets)
        self._view = words.view(self._sets)
        self.tree_names = reader.tree_names
        self.log = describe_unread(len(self._documents), *words.count_unread(self._sets))

    def search(self, question: Question) -> Iterator[Hit]:
        """The files that hold a word, best first; what is equal in both goes by tree and path.

        The score is the number of distinct words, plus a fraction below one that grows with the
        number of occurrences.
        """
        documents, view = self._documents, self._view
        if question.base is not None:
            sets = self._reader.list_base(question.base)
            documents, view = join_documents(sets), self._words.view(sets)
        distinct = np.zeros(len(documents), dtype=np.int64)
        total = np.zeros(len(documents), dtype=np.int64)
        for word in search_words(question.query):
            counts = view.count(word)
            distinct += counts > 0
            total += counts
        order = np.lexsort((-total, -distinct))  # stable: documents come by tree and path
        for index in order[: np.count_nonzero(distinct)].tolist():
            score = distinct[index] + total[index] / (total[index] + 1)
            yield Hit(documents[index].tree, documents[index].path, float(score))

    def close(self) -> None:
        """Let go of the repositories. Safe to call twice."""
        self._reader.close()


def search_words(query: str) -> tuple[str, ...]:
    """The distinct words of a query, lower-cased: three characters or more, no stop words."""
    words = dict.fromkeys(_WORD.findall(query.lower()))
    return tuple(
        word
        for word in words
        if len(word) >= MINIMUM_LENGTH and word not in STOP_WORDS and word.strip("_")
    )
