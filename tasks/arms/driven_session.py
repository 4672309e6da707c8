"""The session of every arm whose answers come from outside coldrun.

The session owns the folders, starts and restarts what answers, counts tries and time, and decides
what is an answer. What differs between the kinds of arms is a `Driver`.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from coldrun.tasks.arms.answer_text import MalformedError, shorten
from coldrun.tasks.arms.base import Corpus, CorpusTree, SessionContext
from coldrun.tasks.arms.driver import ENDED, Driver, StartError
from coldrun.tasks.arms.failures import find_failure
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.arms.templates import question_values
from coldrun.tasks.arms.workspace.isolation import LOG_TAIL_BYTES, Workspace, open_workspace
from coldrun.tasks.config import ProcessArm
from coldrun.tasks.lib.concealment import conceal
from coldrun.tasks.lib.errors import InvalidRunError, UsageError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Attempt, Question, Reply, SessionEnd, SessionStart

LEAVE_SECONDS = 2.0
"""How long what answers may take to leave by itself at the end."""

NOT_SHOWN = re.compile(
    r"no such file|not found|no module named|cannot find|permission denied|read-only file"
    r"|network|resolv|connect",
    re.IGNORECASE,
)
"""Words of a program that misses something, which the sandbox may not show."""

MAX_FAILED_STARTS = 3
"""After this many failed starts in a row, nothing is started again."""


MakeDriver = Callable[[SessionContext, Workspace, threading.Event], Driver[Any]]


class DrivenSession:
    """A session over a driver.

    A question with another base ends what answers and starts it afresh over that tree, in fresh
    folders at the same place: the corpus folder that was reported at the start holds for all
    answers, and nothing that was kept for one base is there for the next.
    """

    def __init__(self, context: SessionContext, make_driver: MakeDriver) -> None:
        """Make its folders; `open` starts what answers. Raises what `open_driven` does."""
        self.context = context
        self.arm = cast("ProcessArm", context.arm)
        self._make_driver = make_driver
        self._aborted = threading.Event()
        self._busy = threading.Lock()
        self._start = SessionStart()
        self._failure: str | None = None
        self._is_up = False
        self._base: str | None = None
        self._ends: list[SessionEnd] = []
        self._settle(context)

    def _settle(self, context: SessionContext, root: Path | None = None) -> None:
        """Make fresh folders, and a driver over them."""
        self.workspace = open_workspace(context, self.arm, root=root)
        try:
            self.driver = self._make_driver(context, self.workspace, self._aborted)
        except BaseException:
            self.workspace.finish()
            raise
        self._is_open = True
        self._degraded: tuple[str, ...] = ()
        self._starts = self._failed_starts = 0

    @property
    def start(self) -> SessionStart:
        """How it came up first; some names are known with the first answer only."""
        return replace(self._start, name=self._start.name or self.driver.name)

    def open(self) -> None:
        """Start what answers for the first time; a failure is kept for the first answer."""
        self._start = self._start_driver()

    def ask(self, question: Question) -> Reply:
        """Answer one question; see `Session.ask`.

        Failures are tried again as often as `retries` says, and an answer that the deployed system
        would not take is asked for once more. The seconds are those of all tries, because that is
        how long the answer took, and all tries are attempts, so that failures stay visible.
        """
        with self._busy:
            if question.base != self._base and not self._aborted.is_set():
                self._move(question.base)
            replies: list[Reply] = []
            failures_left, signals_left = self.arm.retries, 1
            while True:
                reply, signal = self._try(question, replies)
                replies.append(replace(reply, attempts=_number(len(replies) + 1, reply, signal)))
                if self._aborted.is_set():
                    break
                if signal is not None and signals_left:
                    signals_left -= 1
                elif reply.status == "infra" and failures_left:
                    failures_left -= 1
                else:
                    break
            return replace(
                replies[-1],
                seconds=sum(each.seconds for each in replies),
                attempts=tuple(attempt for each in replies for attempt in each.attempts),
            )

    def abort(self) -> None:
        """End it now, from any thread."""
        self._aborted.set()
        self.driver.kill()

    def close(self) -> SessionEnd:
        """End it, and tell what all of its parts left behind."""
        with self._busy:
            self._finish()
            return _join(self._ends)

    def _try(self, question: Question, earlier: Sequence[Reply]) -> tuple[Reply, str | None]:
        failure = self._ensure_started()
        for reason in self.driver.invalid:
            raise InvalidRunError(f"{reason} (arm {self.arm.name!r})")
        if failure is not None:
            return self._infra(Reply(status="infra"), failure, log_start=0), None
        log_start = self.workspace.output.size()
        began = time.monotonic()
        reply = self.driver.ask(question, earlier)
        reply = replace(
            reply,
            seconds=reply.seconds or time.monotonic() - began,
            degraded=tuple(dict.fromkeys((*self._degraded, *reply.degraded))),
        )
        if self.driver.is_broken:
            self._end_driver()
        if reply.status == "infra" or reply.raw is None:
            reason = ENDED if self._aborted.is_set() else reply.reason or "no answer came"
            return self._infra(reply, reason, log_start=log_start), None
        return self._judge(question, reply, reply.raw, log_start)

    def _judge(
        self, question: Question, reply: Reply, raw: str, log_start: int
    ) -> tuple[Reply, str | None]:
        """What came back, as an answer, an abstention or a failure, and the signal in it."""
        parsed = parse_answer(
            raw, self.arm, answer=self.context.answer, corpus_dir=self.workspace.corpus_dir
        )
        try:
            echoes = tuple(question_values(question.query).values())
            failure = find_failure(raw, self.arm, echoes=echoes)
        except MalformedError as error:
            failure = f"malformed output: {error}"
            return self._infra(reply, failure, log_start=log_start), None
        failure = failure or self.driver.find_fault(reply, parsed)
        signal = self.driver.find_signal(reply, parsed)
        if failure is not None:
            return self._infra(reply, failure, log_start=log_start), signal
        is_abstention = parsed.abstained and parsed.problem is None
        return replace(reply, status="abstained" if is_abstention else "answered"), signal

    def _infra(self, reply: Reply, reason: str, *, log_start: int) -> Reply:
        if broken := self.workspace.limits.broken():
            reason += f" (it broke a limit: {', '.join(broken)})"
        return replace(
            reply,
            status="infra",
            reason=conceal(reason),
            stderr=self.workspace.output.read(since=log_start),
            degraded=reply.degraded or self._degraded,
        )

    def _ensure_started(self) -> str | None:
        """Have something that can be asked, or say why there is nothing."""
        if self._aborted.is_set():
            return ENDED
        if self._is_up:
            self.driver.check()
            if not self.driver.is_broken:
                return None
            self._end_driver()
        elif self._failed_starts >= MAX_FAILED_STARTS:
            return f"{self._failure} ({self._failed_starts} times; given up)"
        self._start_driver()
        return ENDED if self._aborted.is_set() else self._failure

    def _start_driver(self) -> SessionStart:
        began = time.monotonic()
        self._starts += 1
        self._failure = None
        log_start = self.workspace.output.size()
        start = SessionStart()
        try:
            start = self.driver.start()
            self._failed_starts = 0
            self._is_up = True
            self._degraded = start.degraded
        except StartError as error:
            said = self.workspace.output.read(since=log_start) or ""
            self._failure = f"the session did not start: {error}{self._explain(said)}"
            self._failed_starts += 1
            self.driver.end()
        seconds = time.monotonic() - began
        indexing = min(max(start.indexing_seconds, 0.0), seconds)
        return replace(
            start,
            startup_seconds=seconds - indexing,
            indexing_seconds=indexing,
            corpus_dir=self.workspace.corpus_dir,
        )

    def _explain(self, said: str) -> str:
        """The last line that a session logged, and what the sandbox may have to do with it."""
        last = shorten(said.splitlines()[-1]) if said else ""
        words = f"; it said {last}" if last else ""
        if self.workspace.view.is_sandboxed and NOT_SHOWN.search(said):
            words += " (the sandbox shows only what `files`, `binaries` and `env` declare)"
        return words

    def _end_driver(self, *, grace_seconds: float = 0.0) -> None:
        self.driver.end(grace_seconds=grace_seconds)
        self.driver.is_broken = False
        self._is_up = False

    def _move(self, base: str | None) -> None:
        """Start afresh over the tree of a base; None for the panel's."""
        context = self.context
        if base is not None:
            context = replace(context, corpus=_corpus_at(context.corpus, base))
        self._finish()
        self._settle(context, self.workspace.root)
        self._base = base
        self._start_driver()

    def _finish(self) -> None:
        """End what answers, and look at what was left behind in the folders."""
        if not self._is_open:
            return
        self._is_open = False
        self._end_driver(grace_seconds=0 if self._aborted.is_set() else LEAVE_SECONDS)
        left = self.workspace.finish(self.arm.writes)
        self._ends.append(
            replace(
                left,
                invalid=(*self.driver.invalid, *left.invalid),
                warnings=(*self.driver.warnings(), *left.warnings),
                restarts=max(0, self._starts - 1),
            )
        )


def open_driven(context: SessionContext, make_driver: MakeDriver) -> DrivenSession:
    """Open a session over a driver of the arm's kind.

    What does not start is the arm's failure: the session opens, and its answers are `infra`.

    Raises:
        ConfigError: A declared file is missing, or a variable that a header needs is not set.
        UsageError: The scratch folder lies inside a git repository.
        StorageError: The scratch folder cannot be written.
        RepositoryError: The corpus cannot be read.
    """
    session = DrivenSession(context, make_driver)
    try:
        if context.on_starting is not None:
            context.on_starting(session.abort)
        session.open()
    except BaseException:
        session.abort()
        session.close()
        raise
    return session


def _number(number: int, reply: Reply, signal: str | None) -> tuple[Attempt, ...]:
    """The attempts of one try: one per model that was used, the time with the first."""
    return tuple(
        replace(
            usage,
            number=number,
            status="infra" if reply.status == "infra" else "ok",
            reason=reply.reason or signal,
            seconds=0.0 if index else reply.seconds,
        )
        for index, usage in enumerate(reply.attempts or (Attempt(),))
    )


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


def _join(ends: Sequence[SessionEnd]) -> SessionEnd:
    """The ends of all parts as one; repeated reasons are named once."""
    logs = [end.log for end in ends if end.log]
    return SessionEnd(
        invalid=tuple(dict.fromkeys(reason for end in ends for reason in end.invalid)),
        warnings=tuple(dict.fromkeys(warning for end in ends for warning in end.warnings)),
        log="\n".join(logs)[-LOG_TAIL_BYTES:] if logs else None,
        restarts=sum(end.restarts for end in ends),
    )
