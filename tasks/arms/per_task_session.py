"""One process per question, its command line made from a template."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from coldrun.tasks.arms.attempts import Tried, ask_with_retries
from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.failures import find_failure, find_misreading
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.arms.templates import fill_text, question_values
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.config import CommandArm
from coldrun.tasks.lib.machine.child_process import (
    Child,
    ChildOversizedError,
    ChildTimeoutError,
    describe_exit,
    spawn_child,
)
from coldrun.tasks.lib.records import Question, Reply, SessionEnd, SessionStart


@dataclass(slots=True, eq=False, kw_only=True)
class PerTaskSession:
    """One process per question, its command line made from a template."""

    context: SessionContext
    arm: CommandArm
    workspace: Workspace
    _child: Child | None = None
    _end: SessionEnd | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _is_aborted: bool = False

    @property
    def start(self) -> SessionStart:
        """Nothing starts before the first question, so only the corpus folder is known."""
        return SessionStart(corpus_dir=self.workspace.corpus_dir)

    def ask(self, question: Question) -> Reply:
        """Answer one question; see `Session.ask`."""
        with self._busy:
            return ask_with_retries(lambda: self._try(question), retries=self.arm.retries)

    def abort(self) -> None:
        """Kill the running process group, from any thread."""
        with self._lock:
            self._is_aborted = True
            if self._child is not None:
                self._child.kill()

    def close(self) -> SessionEnd:
        """Look at what was left behind."""
        with self._busy:
            if self._end is None:
                self._end = self.workspace.finish(self.arm.writes)
            return self._end

    def _try(self, question: Question) -> Tried:
        log_start = self.workspace.log_size()
        began = time.monotonic()
        deadline = began + self.arm.timeout_seconds
        output: bytes | None = None
        code = 0
        reason: str | None = "the session was ended"
        if not self._is_aborted:
            try:
                output, code = self._run(question, deadline)
                reason = None
            except ChildTimeoutError:
                reason = f"timed out after {self.arm.timeout_seconds:g} s"
            except ChildOversizedError:
                reason = f"wrote more than {self.arm.max_output_bytes} bytes for one question"
            except (OSError, ValueError) as error:
                reason = f"{self.arm.argv[0]!r} cannot be started: {error}"
        seconds = time.monotonic() - began
        raw = None if output is None else output.decode("utf-8", "replace")
        stderr = None
        if reason is None and raw is not None:
            stderr = self.workspace.read_log(since=log_start) if code else None
            reason = self._find_failure(question, raw, code, stderr)
        if reason is not None or raw is None:
            return Tried(
                status="infra",
                raw=raw,
                reason=reason,
                stderr=stderr or self.workspace.read_log(since=log_start),
                seconds=seconds,
                is_final=self._is_aborted,
            )
        parsed = parse_answer(
            raw, self.arm, answer=self.context.answer, corpus_dir=self.workspace.corpus_dir
        )
        is_abstention = parsed.abstained and parsed.problem is None
        return Tried(status="abstained" if is_abstention else "answered", raw=raw, seconds=seconds)

    def _run(self, question: Question, deadline: float) -> tuple[bytes, int]:
        values = {
            **self.workspace.values,
            **question_values(question.query),
            "id": question.id,
            "seed": str(question.seed),
            "k": str(question.k),
        }
        child = spawn_child(
            [fill_text(text, values) for text in self.arm.argv],
            cwd=self.workspace.cwd,
            env=self.workspace.environment,
            log=self.workspace.log,
            is_interactive=False,
        )
        with self._lock:
            self._child = child
            if self._is_aborted:
                child.kill()
        try:
            output = child.read_all(deadline=deadline, max_bytes=self.arm.max_output_bytes)
            return output, child.process.returncode
        finally:
            with self._lock:
                self._child = None
            child.end()

    def _find_failure(
        self, question: Question, raw: str, code: int, stderr: str | None
    ) -> str | None:
        """Why this output is no answer. Search programs end with 1 when nothing was found."""
        if self._is_aborted:
            return "the session was ended"
        is_nothing_found = code == 1 and not raw.strip() and stderr is None
        if code != 0 and not is_nothing_found:
            return describe_exit(code)
        echoes = tuple(question_values(question.query).values())
        return find_failure(raw, self.arm, echoes=echoes) or find_misreading(
            raw, self.arm, answer=self.context.answer, corpus_dir=self.workspace.corpus_dir
        )
