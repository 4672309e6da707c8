"""Programs that answer: one process for a whole session, or one for each question."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coldrun.tasks.arms.answer_text import MalformedError
from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.command.command_kind import CommandArm
from coldrun.tasks.arms.command.line_protocol import (
    LATE,
    PROTOCOL,
    decode_line,
    encode_message,
    find_mismatches,
    is_late_usage,
    read_ready,
    shorten_line,
)
from coldrun.tasks.arms.driver import Driver, StartError
from coldrun.tasks.arms.failures import find_misreading
from coldrun.tasks.arms.parse import ParsedAnswer
from coldrun.tasks.arms.templates import fill_text
from coldrun.tasks.arms.usage import add_usage, read_event, read_texts, read_usage
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.lib.machine.child_process import (
    Child,
    ChildEndedError,
    ChildError,
    ChildOversizedError,
    ChildTimeoutError,
    describe_exit,
    spawn_child,
)
from coldrun.tasks.lib.records import Attempt, ComponentEvent, Question, Reply, SessionStart


class CommandDriver(Driver[CommandArm]):
    """What both have in common: how the program is started, and the words for what goes wrong."""

    def spawn(self, values: Mapping[str, str], *, is_interactive: bool) -> Child:
        """Start the program in the session; raises what `spawn_child` raises."""
        child = spawn_child(
            self.workspace.command([fill_text(text, values) for text in self.arm.argv]),
            cwd=self.workspace.cwd,
            env=self.workspace.environment,
            log=self.workspace.log,
            is_interactive=is_interactive,
        )
        self.hold(child)
        return child

    def describe(self, error: Exception) -> str:
        """Why a question was not answered, in words."""
        match error:
            case ChildTimeoutError():
                return f"timed out after {self.arm.timeout_seconds:g} s"
            case ChildOversizedError():
                return f"wrote more than {self.arm.max_output_bytes} bytes for one question"
            case ChildEndedError():
                return str(error)
            case MalformedError():
                return f"malformed output: {error}"
        return f"{self.arm.argv[0]!r} cannot be started: {error}"


class PerTaskDriver(CommandDriver):
    """Runs the program for each question, its command line made from a template."""

    def ask(self, question: Question, _: Sequence[Reply]) -> Reply:
        """Run the program, and take its whole output."""
        log_start = self.workspace.output.size()
        try:
            output, code = self._run(question, time.monotonic() + self.arm.timeout_seconds)
        except (ChildError, OSError, ValueError) as error:
            return Reply(status="infra", reason=self.describe(error))
        raw = output.decode("utf-8", "replace")
        # Search programs end with 1 when they found nothing.
        found_nothing = (
            code == 1 and not raw.strip() and self.workspace.output.read(since=log_start) is None
        )
        if code != 0 and not found_nothing:
            return Reply(status="infra", raw=raw, reason=describe_exit(code))
        return Reply(status="answered", raw=raw)

    def _run(self, question: Question, deadline: float) -> tuple[bytes, int]:
        child = self.spawn(self.values_of(question), is_interactive=False)
        try:
            output = child.read_all(deadline=deadline, max_bytes=self.arm.max_output_bytes)
            return output, child.process.returncode
        finally:
            self.let_go(child)
            child.end()

    def find_fault(self, _: Reply, parsed: ParsedAnswer) -> str | None:
        """Output that names no file of the corpus was misread."""
        return find_misreading(parsed, self.arm, self.context, self.workspace.corpus_dir)


@dataclass(slots=True, eq=False)
class _Spent:
    """What a question in flight has reported so far."""

    usage: list[Attempt] = field(default_factory=list)
    events: list[ComponentEvent] = field(default_factory=list)


class LineDriver(CommandDriver):
    """The process of one session, which speaks JSON Lines on its standard input and output."""

    def __init__(self, context: SessionContext, workspace: Workspace, aborted: threading.Event):
        super().__init__(context, workspace, aborted)
        self._child: Child | None = None
        self._has_strayed = False

    def start(self) -> SessionStart:
        """Start the process and wait until it is ready."""
        try:
            return self._greet(time.monotonic() + self.arm.startup_timeout_seconds)
        except ChildTimeoutError:
            limit = self.arm.startup_timeout_seconds
            raise StartError(f"it was not ready after {limit:g} s") from None
        except ChildOversizedError as error:
            raise StartError(f"it wrote {error}") from None
        except (ChildEndedError, MalformedError) as error:
            raise StartError(str(error)) from None
        except (OSError, ValueError) as error:
            raise StartError(self.describe(error)) from None

    def _greet(self, deadline: float) -> SessionStart:
        child = self._child = self.spawn(self.workspace.values, is_interactive=True)
        nonce = secrets.token_hex(16)
        hello = {
            "type": "hello",
            "protocol": PROTOCOL,
            "corpus": self.workspace.corpus_dir,
            "answer": self.context.answer,
            "k": self.context.k,
            "seed": self.context.seed,
            "nonce": nonce,
        }
        child.send(encode_message(hello), deadline=deadline)
        line = child.read_line(deadline=deadline, max_bytes=self.arm.max_output_bytes)
        message = decode_line(line)
        if message.get("type") == "error":
            raise MalformedError(str(message.get("message")))
        if message.get("type") != "ready":
            raise MalformedError(f"expected a `ready` line, found {shorten_line(line)}")
        start = read_ready(message)
        for reason in find_mismatches(start, point=self.context.point, nonce=nonce):
            self.invalid[reason] = None
        return start

    def check(self) -> None:
        """Output between questions must not be taken for the next answer."""
        child = self._child
        if child is None:
            return
        is_quiet = is_late_usage(child.take_stray_output())
        self.is_broken = not (child.is_alive and is_quiet)
        self._has_strayed |= child.is_alive and not is_quiet

    def ask(self, question: Question, _: Sequence[Reply]) -> Reply:
        """Send a question, and read lines until its answer."""
        began = time.monotonic()
        spent = _Spent()
        try:
            return self._exchange(question, spent, began + self.arm.timeout_seconds)
        except (ChildError, MalformedError) as error:
            self.is_broken = True
            return Reply(
                status="infra",
                reason=self.describe(error),
                attempts=add_usage(spent.usage),
                events=tuple(spent.events),
            )

    def _exchange(self, question: Question, spent: _Spent, deadline: float) -> Reply:
        child = self._child
        if child is None:
            raise ChildEndedError("the process was ended")
        line = encode_message({"type": "question", "id": question.id, "query": question.query})
        child.send(line, deadline=deadline)
        bytes_left = self.arm.max_output_bytes
        while True:
            raw = child.read_line(deadline=deadline, max_bytes=bytes_left)
            bytes_left -= len(raw)
            message = decode_line(raw)
            kind = message.get("type")
            if kind not in (*LATE, "answer", "error"):
                raise MalformedError(f"unexpected line {shorten_line(raw)}")
            if message.get("id") != question.id:
                if kind in LATE:
                    continue
                raise MalformedError(
                    f"an {kind} for {message.get('id')!r} while {question.id!r} was asked"
                )
            if kind == "usage":
                spent.usage += read_usage(message.get("usage", message))
            elif kind == "event":
                spent.events.append(read_event(message, len(spent.events)))
            else:
                return _read_reply(message, raw.decode("utf-8"), spent)

    def find_fault(self, _: Reply, parsed: ParsedAnswer) -> str | None:
        """The protocol is fixed, so an answer that cannot be read now never can be."""
        return None if parsed.problem is None else f"malformed answer: {parsed.problem}"

    def end(self, *, grace_seconds: float = 0.0) -> None:
        """End the process group; with a grace, say `bye` first."""
        child, self._child = self._child, None
        if child is None:
            return
        self.let_go(child)
        if grace_seconds and child.is_alive:
            try:
                child.send(
                    encode_message({"type": "bye"}), deadline=time.monotonic() + grace_seconds
                )
            except (ChildEndedError, ChildTimeoutError):
                grace_seconds = 0.0
        child.end(grace_seconds=grace_seconds)

    def warnings(self) -> list[str]:
        """Whether it wrote lines between questions."""
        return ["wrote a line between questions, and was restarted"] if self._has_strayed else []


def _read_reply(message: dict[str, Any], raw: str, spent: _Spent) -> Reply:
    """The reply in an `answer` or `error` line; the usage in it is the total."""
    total = read_usage(message.get("usage"))
    failure = message.get("error")
    if message["type"] == "error":
        failure = message.get("message") or "the arm reported an error without a message"
    trajectory = message.get("trajectory")
    if trajectory is not None and not isinstance(trajectory, str):
        trajectory = json.dumps(trajectory, ensure_ascii=False)
    stop_reason = message.get("stop_reason")
    return Reply(
        status="infra" if failure else "answered",
        raw=raw,
        reason=str(failure) if failure else None,
        stop_reason=None if stop_reason is None else str(stop_reason),
        degraded=read_texts(message.get("degraded")),
        trajectory=trajectory,
        attempts=add_usage(total or spent.usage),
        events=tuple(spent.events),
    )
