"""The session of a built-in arm: a searcher in this process, its answers in the protocol's form."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

from coldrun.tasks.arms.builtin.token_cache import HUGE_BYTES
from coldrun.tasks.lib.errors import ColdrunError
from coldrun.tasks.lib.records import AnswerKind, Attempt, Question, Reply, SessionEnd, SessionStart

SET_SHARE = 0.8
"""A set holds what scores at least this share of the best: near ties, whatever the scale."""


class Hit(NamedTuple):
    """A file that was found, and how well it fits. Higher is better, all are above 0."""

    tree: str
    path: str
    score: float


class Item(NamedTuple):
    """An item of an answer: a path, or the name of a tree where the corpus has several."""

    name: str
    score: float


class Searcher(Protocol):
    """What ranks the files of a corpus."""

    @property
    def tree_names(self) -> Sequence[str]:
        """The names of the corpus's trees."""
        ...

    @property
    def log(self) -> str:
        """One line that says what is searched and what is not."""
        ...

    def search(self, question: Question) -> Iterable[Hit]:
        """The files that fit, best first; equal scores by tree and path."""
        ...

    def close(self) -> None:
        """Let go of the repositories. Safe to call twice."""
        ...


@dataclass(slots=True)
class BuiltinSession:
    """Asks a searcher. Several threads may ask, though a session needs no more than one."""

    searcher: Searcher
    start: SessionStart
    _aborted: threading.Event

    def ask(self, question: Question) -> Reply:
        """Answer one question; what cannot be read from git is infra, with the reason."""
        started = time.perf_counter()
        if self._aborted.is_set():
            return _fail("the session was ended", started)
        try:
            hits = self.searcher.search(question)
            items = choose_items(hits, question.answer, question.k, self.searcher.tree_names)
        except ColdrunError as error:
            return _fail(str(error), started)
        seconds = time.perf_counter() - started
        return Reply(
            status="answered" if items or question.answer == "set" else "abstained",
            raw=json.dumps(
                {"items": [{"path": item.name, "score": round(item.score, 6)} for item in items]},
                ensure_ascii=False,
            ),
            seconds=seconds,
            attempts=(Attempt(number=1, status="ok", seconds=seconds),),
        )

    def close(self) -> SessionEnd:
        """Nothing was written into the corpus; says what was not read."""
        self.searcher.close()
        return SessionEnd(log=self.searcher.log)

    def abort(self) -> None:
        """Questions from now on are infra; one in flight ends by itself within moments."""
        self._aborted.set()


def begin_session(searcher: Searcher, *, opened_at: float, indexed_at: float) -> BuiltinSession:
    """A session over a searcher that is ready; the times are those of `time.perf_counter`."""
    now = time.perf_counter()
    start = SessionStart(startup_seconds=indexed_at - opened_at, indexing_seconds=now - indexed_at)
    return BuiltinSession(searcher, start, threading.Event())


def choose_items(
    hits: Iterable[Hit], answer: AnswerKind, k: int, tree_names: Sequence[str]
) -> tuple[Item, ...]:
    """Turn found files into an answer.

    With several trees an item is a tree, which scores as its best file does. A ranking is the k
    best items. A set is those among them that score at least `SET_SHARE` of the best one.
    """
    items = _trees(hits) if len(tree_names) > 1 else (Item(hit.path, hit.score) for hit in hits)
    best = tuple(islice(items, k))
    if answer == "ranking" or not best:
        return best
    return tuple(item for item in best if item.score >= SET_SHARE * best[0].score)


def describe_unread(files: int, binary: int, huge: int) -> str:
    """One line that says how many files a searcher lists, and which of them it did not read."""
    return f"{files} files; not read: {binary} binary, {huge} over {HUGE_BYTES // 1024} KiB"


def _trees(hits: Iterable[Hit]) -> Iterable[Item]:
    seen = set()
    for hit in hits:
        if hit.tree not in seen:
            seen.add(hit.tree)
            yield Item(hit.tree, hit.score)


def _fail(reason: str, started: float) -> Reply:
    seconds = time.perf_counter() - started
    return Reply(
        status="infra",
        reason=reason,
        seconds=seconds,
        attempts=(Attempt(number=1, status="infra", reason=reason, seconds=seconds),),
    )
