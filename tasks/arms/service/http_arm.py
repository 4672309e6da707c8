"""Arms that are HTTP services: one POST of JSON per question."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from coldrun.tasks.arms.answer_text import MalformedError
from coldrun.tasks.arms.attempts import Tried, ask_with_retries, digest_arguments
from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.arms.failures import find_failure
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.arms.per_base import WorkspaceSession, begin_session, open_per_base
from coldrun.tasks.arms.service.endpoint import Endpoint, open_endpoint
from coldrun.tasks.arms.templates import fill_arguments, question_values
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.config import HttpArm
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import ComponentEvent, Question, Reply, SessionEnd, SessionStart


def open_http_session(context: SessionContext) -> Session:
    """Open a session of an `http` arm.

    An endpoint that is not there is the arm's failure: the session opens, and its answers are
    `infra`.

    Raises:
        ConfigError: The arm is no `http` arm, a declared file is missing, or a variable that a
            header needs is not set.
        UsageError: The scratch folder lies inside a git repository.
        StorageError: The scratch folder cannot be written.
        RepositoryError: The corpus cannot be read.
    """
    return open_per_base(context, _open)


def _open(context: SessionContext, root: Path | None) -> WorkspaceSession:
    arm = context.arm
    if not isinstance(arm, HttpArm):
        raise ConfigError(f"arm {arm.name!r} is of kind {arm.kind!r}, not `http`")
    endpoint = open_endpoint(context, arm, root)
    return begin_session(HttpSession(context=context, arm=arm, endpoint=endpoint), context)


@dataclass(slots=True, eq=False, kw_only=True)
class HttpSession:
    """One HTTP service, asked question by question."""

    context: SessionContext
    arm: HttpArm
    endpoint: Endpoint
    _start: SessionStart = field(default_factory=SessionStart)
    _end: SessionEnd | None = None
    _busy: threading.Lock = field(default_factory=threading.Lock)

    @property
    def workspace(self) -> Workspace:
        """The session's folders."""
        return self.endpoint.workspace

    @property
    def start(self) -> SessionStart:
        """How the session came up."""
        return self._start

    def open(self) -> None:
        """Start the server, where it is coldrun's to start."""
        seconds = self.endpoint.open()
        self._start = SessionStart(startup_seconds=seconds, corpus_dir=self.workspace.corpus_dir)

    def ask(self, question: Question) -> Reply:
        """Answer one question; see `Session.ask`."""
        with self._busy:
            return ask_with_retries(lambda: self._try(question), retries=self.arm.retries)

    def abort(self) -> None:
        """End the request in flight, from any thread."""
        self.endpoint.abort()

    def close(self) -> SessionEnd:
        """End the session, and look at what was left behind."""
        with self._busy:
            if self._end is None:
                self._end = self.endpoint.close()
            return self._end

    def _try(self, question: Question) -> Tried:
        log_start = self.workspace.log_size()
        filled = question_values(question.query)
        body = fill_arguments(
            self.arm.body,
            {**self.workspace.values, **filled, "id": question.id},
            {"k": question.k, "seed": question.seed},
        )
        posted = self.endpoint.post("", body)
        event = ComponentEvent(
            name="http",
            position=0,
            arguments_digest=digest_arguments(body),
            returned_bytes=None if posted.text is None else len(posted.text.encode("utf-8")),
        )
        tried = Tried(
            status="infra",
            raw=posted.text,
            reason=posted.reason,
            seconds=posted.seconds,
            events=(event,),
            is_final=self.endpoint.is_aborted,
        )
        failure = posted.reason
        is_abstention = False
        if posted.text is not None and failure is None:
            parsed = parse_answer(
                posted.text,
                self.arm,
                answer=self.context.answer,
                corpus_dir=self.workspace.corpus_dir,
            )
            try:
                failure = find_failure(posted.text, self.arm, echoes=tuple(filled.values()))
            except MalformedError as error:
                failure = f"malformed output: {error}"
            is_abstention = parsed.abstained and parsed.problem is None
        if failure is not None:
            return replace(tried, reason=failure, stderr=self.workspace.read_log(since=log_start))
        return replace(tried, status="abstained" if is_abstention else "answered")
