"""A session that speaks JSON Lines on its standard input and output."""

from __future__ import annotations

import json
import secrets
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

from coldrun.tasks.arms.attempts import (
    Tried,
    Usage,
    add_usage,
    ask_with_retries,
    read_event,
    read_texts,
    read_usage,
)
from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.failures import find_failure
from coldrun.tasks.arms.line_protocol import (
    PROTOCOL,
    ProtocolError,
    decode_line,
    encode_message,
    is_late_usage,
    read_ready,
    shorten_line,
)
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.arms.session_identity import find_mismatches
from coldrun.tasks.arms.starts import Starts
from coldrun.tasks.arms.templates import fill_text, question_values
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.config import CommandArm
from coldrun.tasks.lib.errors import InvalidRunError
from coldrun.tasks.lib.machine.child_process import (
    Child,
    ChildEndedError,
    ChildOversizedError,
    ChildTimeoutError,
    spawn_child,
)
from coldrun.tasks.lib.records import ComponentEvent, Question, Reply, SessionEnd, SessionStart

LEAVE_SECONDS = 2.0
"""How long a session that was told `bye` may take to leave by itself."""


@dataclass(slots=True, eq=False, kw_only=True)
class _Exchange:
    """One question in flight: what has come back so far, and until when the rest may come."""

    question: Question
    began: float
    deadline: float
    bytes_left: int
    usage: list[Usage] = field(default_factory=list)
    events: list[ComponentEvent] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class LineSession:
    """A process that speaks JSON Lines on its standard input and output."""

    context: SessionContext
    arm: CommandArm
    workspace: Workspace
    _start: SessionStart = field(default_factory=SessionStart)
    _child: Child | None = None
    _starts: Starts = field(default_factory=Starts)
    _invalid: dict[str, None] = field(default_factory=dict)
    _warnings: dict[str, None] = field(default_factory=dict)
    _end: SessionEnd | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _is_aborted: bool = False

    @property
    def start(self) -> SessionStart:
        """How the session came up; of a restarted one, how it came up first."""
        return self._start

    def open(self) -> None:
        """Start the process for the first time."""
        self._start = replace(self._start, corpus_dir=self.workspace.corpus_dir)
        first = self._start_child()
        self._start = replace(first, corpus_dir=self.workspace.corpus_dir)

    def ask(self, question: Question) -> Reply:
        """Answer one question; see `Session.ask`."""
        with self._busy:
            self._refuse_invalid()
            return ask_with_retries(lambda: self._try(question), retries=self.arm.retries)

    def abort(self) -> None:
        """Kill the process group, from any thread."""
        with self._lock:
            self._is_aborted = True
            if self._child is not None:
                self._child.kill()

    def close(self) -> SessionEnd:
        """Say bye, end the process group, and look at what was left behind."""
        with self._busy:
            if self._end is None:
                self._end_child(grace_seconds=0 if self._is_aborted else LEAVE_SECONDS)
                left = self.workspace.finish(self.arm.writes)
                self._end = replace(
                    left,
                    invalid=(*self._invalid, *left.invalid),
                    warnings=(*self._warnings, *left.warnings),
                    restarts=self._starts.restarts,
                )
            return self._end

    def _refuse_invalid(self) -> None:
        for reason in self._invalid:
            raise InvalidRunError(f"{reason} (arm {self.arm.name!r})")

    def _start_child(self) -> SessionStart:
        """Start the process and wait until it is ready; a failure is kept for the next answer."""
        began = time.monotonic()
        nonce = secrets.token_hex(16)
        self._starts.begin()
        try:
            start = self._greet(nonce, began)
        except (ChildEndedError, ProtocolError) as error:
            self._starts.fail(f"the session did not start: {error}")
        except ChildTimeoutError:
            limit = self.arm.startup_timeout_seconds
            self._starts.fail(f"the session was not ready after {limit:g} s")
        except ChildOversizedError as error:
            self._starts.fail(f"the session did not start: it wrote {error}")
        except (OSError, ValueError) as error:
            self._starts.fail(f"{self.arm.argv[0]!r} cannot be started: {error}")
        if self._starts.failure is not None:
            self._end_child()
            return SessionStart(startup_seconds=time.monotonic() - began)
        self._starts.succeed()
        for reason in find_mismatches(start, point=self.context.point, nonce=nonce):
            self._invalid[reason] = None
        return start

    def _greet(self, nonce: str, began: float) -> SessionStart:
        workspace = self.workspace
        values = workspace.values
        child = spawn_child(
            [fill_text(text, values) for text in self.arm.argv],
            cwd=workspace.cwd,
            env=workspace.environment,
            log=workspace.log,
        )
        with self._lock:
            self._child = child
            if self._is_aborted:
                child.kill()
        deadline = began + self.arm.startup_timeout_seconds
        hello = {
            "type": "hello",
            "protocol": PROTOCOL,
            "corpus": workspace.corpus_dir,
            "answer": self.context.answer,
            "k": self.context.k,
            "seed": self.context.seed,
            "nonce": nonce,
        }
        child.send(encode_message(hello), deadline=deadline)
        line = child.read_line(deadline=deadline, max_bytes=self.arm.max_output_bytes)
        message = decode_line(line)
        if message.get("type") == "error":
            raise ProtocolError(str(message.get("message")))
        if message.get("type") != "ready":
            raise ProtocolError(f"expected a `ready` line, found {shorten_line(line)}")
        return read_ready(message, seconds=time.monotonic() - began)

    def _try(self, question: Question) -> Tried:
        failure = self._ensure_child()
        self._refuse_invalid()
        child = self._child
        if failure is not None or child is None:
            return self._infra(failure or "the session was ended", log_start=0)
        log_start = self.workspace.log_size()
        began = time.monotonic()
        exchange = _Exchange(
            question=question,
            began=began,
            deadline=began + self.arm.timeout_seconds,
            bytes_left=self.arm.max_output_bytes,
        )
        try:
            return self._exchange(child, exchange, log_start)
        except ChildTimeoutError:
            reason = f"timed out after {self.arm.timeout_seconds:g} s"
        except ChildOversizedError:
            reason = f"wrote more than {self.arm.max_output_bytes} bytes for one question"
        except ChildEndedError as error:
            reason = str(error)
        except ProtocolError as error:
            reason = f"malformed output: {error}"
        seconds = time.monotonic() - began
        self._end_child()
        return self._infra(reason, log_start=log_start, exchange=exchange, seconds=seconds)

    def _ensure_child(self) -> str | None:
        """Have a live process that is in step with us, or say why there is none."""
        if self._is_aborted:
            return "the session was ended"
        child = self._child
        if child is not None:
            stray = child.take_stray_output()
            if child.is_alive and is_late_usage(stray):
                return None
            if child.is_alive:
                self._warnings["wrote a line that nobody asked for, and was started again"] = None
            self._end_child()
        elif self._starts.refusal is not None:
            return self._starts.refusal
        self._start_child()
        return "the session was ended" if self._is_aborted else self._starts.failure

    def _exchange(self, child: Child, exchange: _Exchange, log_start: int) -> Tried:
        question = exchange.question
        line = encode_message({"type": "question", "id": question.id, "query": question.query})
        child.send(line, deadline=exchange.deadline)
        while True:
            raw = child.read_line(deadline=exchange.deadline, max_bytes=exchange.bytes_left)
            exchange.bytes_left -= len(raw)
            message = decode_line(raw)
            kind = message.get("type")
            if kind not in ("usage", "event", "answer", "error"):
                raise ProtocolError(f"unexpected line {shorten_line(raw)}")
            if message.get("id") != question.id:
                if kind in ("usage", "event"):
                    continue
                raise ProtocolError(
                    f"an {kind} for {message.get('id')!r} while {question.id!r} was asked"
                )
            try:
                if kind == "usage":
                    exchange.usage += read_usage(message.get("usage", message))
                elif kind == "event":
                    exchange.events.append(read_event(message, len(exchange.events)))
                else:
                    return self._finish(message, raw.decode("utf-8"), exchange, log_start)
            except (TypeError, ValueError) as error:
                raise ProtocolError(str(error)) from None

    def _finish(
        self, message: dict[str, Any], raw: str, exchange: _Exchange, log_start: int
    ) -> Tried:
        """The try that an `answer` or `error` line ends; the process lives on."""
        seconds = time.monotonic() - exchange.began
        total = read_usage(message.get("usage"))
        if total:
            exchange.usage = list(total)
        failure = message.get("error")
        if message["type"] == "error":
            failure = message.get("message") or "the arm reported an error without a message"
        if not failure:
            failure = find_failure(
                raw, self.arm, echoes=tuple(question_values(exchange.question.query).values())
            )
        parsed = parse_answer(
            raw, self.arm, answer=self.context.answer, corpus_dir=self.workspace.corpus_dir
        )
        if not failure and parsed.problem is not None:
            failure = f"malformed answer: {parsed.problem}"
        degraded = (*self._start.degraded, *read_texts(message.get("degraded")))
        if failure:
            return replace(
                self._infra(str(failure), log_start=log_start, exchange=exchange, seconds=seconds),
                raw=raw,
                degraded=tuple(dict.fromkeys(degraded)),
            )
        trajectory = message.get("trajectory")
        stop_reason = message.get("stop_reason")
        return Tried(
            status="abstained" if parsed.abstained else "answered",
            raw=raw,
            seconds=seconds,
            stop_reason=None if stop_reason is None else str(stop_reason),
            degraded=tuple(dict.fromkeys(degraded)),
            trajectory=trajectory
            if trajectory is None or isinstance(trajectory, str)
            else json.dumps(trajectory, ensure_ascii=False),
            usage=add_usage(exchange.usage),
            events=tuple(exchange.events),
        )

    def _infra(
        self,
        reason: str,
        *,
        log_start: int,
        exchange: _Exchange | None = None,
        seconds: float = 0.0,
    ) -> Tried:
        return Tried(
            status="infra",
            reason=reason,
            stderr=self.workspace.read_log(since=log_start),
            seconds=seconds,
            degraded=self._start.degraded,
            usage=add_usage(exchange.usage) if exchange else (),
            events=tuple(exchange.events) if exchange else (),
            is_final=self._is_aborted,
        )

    def _end_child(self, *, grace_seconds: float = 0.0) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return
        if grace_seconds and child.is_alive:
            try:
                child.send(
                    encode_message({"type": "bye"}), deadline=time.monotonic() + grace_seconds
                )
            except (ChildEndedError, ChildTimeoutError):
                grace_seconds = 0.0
        child.end(grace_seconds=grace_seconds)
