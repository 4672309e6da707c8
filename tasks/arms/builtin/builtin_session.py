"""The session of a built-in search: in this process, its answers in the protocol's form."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from coldrun.tasks.arms.base import Corpus, Session, SessionContext
from coldrun.tasks.arms.builtin.builtin_kinds import Bm25Arm, HistoryArm
from coldrun.tasks.arms.builtin.documents import CorpusReader, DocumentSet
from coldrun.tasks.arms.builtin.token_cache import HUGE_BYTES, TokenCache
from coldrun.tasks.arms.builtin.unit_counts import OpenDocuments
from coldrun.tasks.lib.errors import ColdrunError
from coldrun.tasks.lib.records import AnswerKind, Attempt, Question, Reply, SessionEnd, SessionStart

SET_SHARE = 0.8
"""A set holds what scores at least this share of the best: near ties, whatever the scale."""

Shared = TypeVar("Shared")


class Hit(NamedTuple):
    """A file that was found, and how well it fits. Higher is better, all are above 0."""

    tree: str
    path: str
    score: float


class SearchTree(Protocol):
    """A tree, or several together, ready to be searched."""

    @property
    def documents(self) -> OpenDocuments:
        """All files, and how many are not read."""
        ...

    def search(self, query: str) -> Iterator[Hit]:
        """The files that fit, best first; equal scores by tree and path."""
        ...


class SharedStore:
    """What sessions of one process share, by key: at most `capacity` values, the least used
    forgotten first. Threads that want the same one wait for one build."""

    def __init__(self, capacity: int = 6) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def get(self, key: Hashable, build: Callable[[], Shared]) -> Shared:
        """The value under `key`, built by the first who asks. A failed build is not kept.

        The key must name everything that decides what `build` returns, and its type.
        """
        with self._lock:
            future = self._values.get(key)
            is_builder = future is None
            if future is None:
                future = Future()
                self._values[key] = future
                while len(self._values) > self._capacity:
                    self._values.popitem(last=False)
            self._values.move_to_end(key)
        if is_builder:
            self._build(key, future, build)
        return cast("Shared", future.result())

    def _build(self, key: Hashable, future: Future[Any], build: Callable[[], object]) -> None:
        try:
            future.set_result(build())
        except BaseException as error:
            with self._lock:
                if self._values.get(key) is future:
                    del self._values[key]
            future.set_exception(error)
            raise


@cache
def process_store() -> SharedStore:
    """The store of this process, for sessions that were given none."""
    return SharedStore()


@dataclass(slots=True)
class BuiltinSession:
    """Asks a search. Several threads may ask, though a session needs no more than one.

    `fixed` is the corpus where all questions have one base; the tree of a question with a base of
    its own is opened for that question.
    """

    reader: CorpusReader
    open_tree: Callable[[Sequence[DocumentSet]], SearchTree]
    close_store: Callable[[], None]
    fixed: SearchTree | None
    start: SessionStart
    _aborted: threading.Event = field(default_factory=threading.Event)

    def ask(self, question: Question) -> Reply:
        """Answer one question; what cannot be read from git is infra, with the reason."""
        started = time.perf_counter()
        if self._aborted.is_set():
            return _fail("the session was ended", started)
        try:
            hits = self._tree(question.base).search(question.query)
            items = choose_items(hits, question.answer, question.k, self.reader.tree_names)
        except ColdrunError as error:
            return _fail(str(error), started)
        seconds = time.perf_counter() - started
        found = [{"path": name, "score": round(score, 6)} for name, score in items]
        return Reply(
            status="answered" if items or question.answer == "set" else "abstained",
            raw=json.dumps({"items": found}, ensure_ascii=False),
            seconds=seconds,
            attempts=(Attempt(seconds=seconds),),
        )

    def _tree(self, base: str | None) -> SearchTree:
        if base is not None:
            return self.open_tree(self.reader.list_base(base))
        return self.fixed or self.open_tree(self.reader.list_trees())

    def close(self) -> SessionEnd:
        """Nothing was written into the corpus; says what was not read."""
        self.reader.close()
        self.close_store()
        if self.fixed is None:
            return SessionEnd(log="a tree for each question")
        found = self.fixed.documents
        unread = f"{found.binary} binary, {found.huge} over {HUGE_BYTES // 1024} KiB"
        return SessionEnd(log=f"{len(found.files)} files; not read: {unread}")

    def abort(self) -> None:
        """Questions from now on are infra; one in flight ends by itself within moments."""
        self._aborted.set()


def open_builtin_session(context: SessionContext, store: SharedStore | None = None) -> Session:
    """Open a session of a built-in arm: read the corpus from git, and make it searchable.

    Sessions that share a `store` (by default that of the process) read a blob once.

    Raises:
        RepositoryError: The corpus cannot be read.
        StorageError: The token cache cannot be used.
    """
    opened_at = time.perf_counter()
    store = store or process_store()
    reader = _share_reader(context.corpus, store)
    indexed_at = time.perf_counter()
    arm, scratch = context.arm, context.scratch
    open_tree: Callable[[Sequence[DocumentSet]], SearchTree]
    if isinstance(arm, Bm25Arm):
        from coldrun.tasks.arms.builtin.bm25 import Bm25Store

        settings = {"k1": arm.k1, "b": arm.b, "path_weight": arm.path_weight}
        bm25 = store.get(
            ("bm25", scratch, *reader.git_dirs), lambda: Bm25Store(TokenCache(scratch))
        )
        open_tree, close_store = lambda sets: bm25.open_tree(sets, **settings), bm25.close
    elif isinstance(arm, HistoryArm):
        from coldrun.tasks.arms.builtin.history import HistoryStore

        own = {"k1": arm.k1, "b": arm.b}
        history = store.get(("history", *reader.git_dirs), HistoryStore)
        open_tree, close_store = lambda sets: history.open_tree(sets, **own), history.close
    else:
        from coldrun.tasks.arms.builtin.grep import GrepStore

        grep = store.get(("grep", *reader.git_dirs), GrepStore)
        open_tree, close_store = grep.open_tree, grep.close
    fixed = None if context.corpus.is_per_task else open_tree(reader.list_trees())
    now = time.perf_counter()
    start = SessionStart(startup_seconds=indexed_at - opened_at, indexing_seconds=now - indexed_at)
    return BuiltinSession(reader, open_tree, close_store, fixed, start)


def choose_items(
    hits: Iterable[Hit], answer: AnswerKind, k: int, tree_names: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    """Turn found files into the names and scores of an answer.

    With several trees an item is a tree, which scores as its best file does. A ranking is the k
    best items. A set is those among them that score at least `SET_SHARE` of the best one.
    """
    items = _trees(hits) if len(tree_names) > 1 else ((hit.path, hit.score) for hit in hits)
    best = tuple(islice(items, k))
    if answer == "ranking" or not best:
        return best
    return tuple(item for item in best if item[1] >= SET_SHARE * best[0][1])


def _trees(hits: Iterable[Hit]) -> Iterator[tuple[str, float]]:
    seen = set()
    for hit in hits:
        if hit.tree not in seen:
            seen.add(hit.tree)
            yield hit.tree, hit.score


def _share_reader(corpus: Corpus, store: SharedStore) -> CorpusReader:
    """The reader of a corpus that all sessions with this store use."""
    trees = tuple((name, tree.git_dir, tree.commit) for name, tree in sorted(corpus.trees.items()))
    return store.get(("corpus", trees), lambda: CorpusReader(corpus))


def _fail(reason: str, started: float) -> Reply:
    seconds = time.perf_counter() - started
    attempt = Attempt(status="infra", reason=reason, seconds=seconds)
    return Reply(status="infra", reason=reason, seconds=seconds, attempts=(attempt,))
