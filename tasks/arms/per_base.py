"""Sessions of arms that run programs, moved to another corpus when a task has its own base."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from coldrun.tasks.arms.base import Corpus, CorpusTree, Session, SessionContext
from coldrun.tasks.arms.workspace.isolation import LOG_TAIL_BYTES, Workspace
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Question, Reply, SessionEnd, SessionStart


class WorkspaceSession(Session, Protocol):
    """A session that lives in the folders of a workspace."""

    @property
    def workspace(self) -> Workspace:
        """The session's folders."""
        ...


class StartingSession(WorkspaceSession, Protocol):
    """A workspace session that has yet to be started."""

    def open(self) -> None:
        """Start what answers."""
        ...


Starting = TypeVar("Starting", bound=StartingSession)


@dataclass(slots=True, eq=False, kw_only=True)
class PerBaseSession:
    """A session that is ended and opened afresh whenever the next question has another base.

    The new session gets fresh folders at the same place, so that the corpus folder which was
    reported at the start holds for all answers, and nothing that was kept for one base is there
    for the next.
    """

    context: SessionContext
    open_inner: Callable[[SessionContext, Path | None], WorkspaceSession]
    inner: WorkspaceSession
    _start: SessionStart
    _base: str | None = None
    _ends: list[SessionEnd] = field(default_factory=list)
    _end: SessionEnd | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_aborted: bool = False

    @property
    def start(self) -> SessionStart:
        """How the first of the sessions came up; a name may be known with the first answer only."""
        return replace(self._start, name=self._start.name or self.inner.start.name)

    def ask(self, question: Question) -> Reply:
        """Answer one question; see `Session.ask`."""
        if question.base != self._base:
            self._move(question.base)
        return self.inner.ask(question)

    def abort(self) -> None:
        """End it now, from any thread."""
        with self._lock:
            self._is_aborted = True
            self.inner.abort()

    def close(self) -> SessionEnd:
        """End the session, and tell what all of its parts left behind."""
        if self._end is None:
            self._end = _join([*self._ends, self.inner.close()])
        return self._end

    def _move(self, base: str | None) -> None:
        context = self.context
        if base is not None:
            context = replace(context, corpus=_corpus_at(context.corpus, base))
        root = self.inner.workspace.root
        self._ends.append(self.inner.close())
        inner = self.open_inner(context, root)
        with self._lock:
            self.inner = inner
            if self._is_aborted:
                inner.abort()
        self._base = base


def open_per_base(
    context: SessionContext,
    open_inner: Callable[[SessionContext, Path | None], WorkspaceSession],
) -> Session:
    """Open a session over the panel's corpus, ready to move to the bases of single tasks."""
    inner = open_inner(context, None)
    return PerBaseSession(context=context, open_inner=open_inner, inner=inner, _start=inner.start)


def begin_session(session: Starting, context: SessionContext) -> Starting:
    """Start a session; one that cannot be started leaves nothing behind."""
    try:
        if context.on_starting is not None:
            context.on_starting(session.abort)
        session.open()
    except BaseException:
        session.abort()
        session.close()
        raise
    return session


def _corpus_at(corpus: Corpus, base: str) -> Corpus:
    if len(corpus.trees) != 1:
        raise UsageError(
            f"the task has a base of its own ({base}), which takes a corpus of one tree; this one "
            f"has {len(corpus.trees)}"
        )
    ((name, tree),) = corpus.trees.items()
    found = Repository.open(tree.git_dir).resolve(base)
    moved = CorpusTree(git_dir=tree.git_dir, commit=found.commit, tree=found.tree)
    return Corpus(trees={name: moved})


def _join(ends: list[SessionEnd]) -> SessionEnd:
    """The ends of all parts as one; repeated reasons are named once."""
    logs = [end.log for end in ends if end.log]
    return SessionEnd(
        invalid=tuple(dict.fromkeys(reason for end in ends for reason in end.invalid)),
        warnings=tuple(dict.fromkeys(warning for end in ends for warning in end.warnings)),
        log="\n".join(logs)[-LOG_TAIL_BYTES:] if logs else None,
        restarts=sum(end.restarts for end in ends),
    )
