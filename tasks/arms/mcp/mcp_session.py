"""Arms that are MCP servers: prepared by calls of their tools, asked by one more."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mcp.types import CallToolResult, TextContent

from coldrun.tasks.arms.answer_text import SHORT_TEXT, shorten
from coldrun.tasks.arms.attempts import Tried, ask_with_retries, digest_arguments
from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.arms.failures import find_failure, find_misreading
from coldrun.tasks.arms.mcp.mcp_connection import (
    ServerConnection,
    ServerError,
    ServerTimeoutError,
    Transport,
)
from coldrun.tasks.arms.mcp.mcp_http import HttpTransport
from coldrun.tasks.arms.mcp.mcp_stdio import StdioTransport
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.arms.per_base import WorkspaceSession, begin_session, open_per_base
from coldrun.tasks.arms.service.own_server import ListeningServer, ServerStartError, start_server
from coldrun.tasks.arms.service.settings import HttpSettings, read_settings
from coldrun.tasks.arms.service.variables import require_variables
from coldrun.tasks.arms.starts import Starts
from coldrun.tasks.arms.templates import fill_arguments, fill_text, question_values
from coldrun.tasks.arms.workspace.isolation import Workspace, open_workspace
from coldrun.tasks.config import McpArm, ToolCall
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import ComponentEvent, Question, Reply, SessionEnd, SessionStart

LEAVE_SECONDS = 2.0
SAID_LENGTH = 300
"""How much of what a tool said stands in a reason, in characters."""


def open_mcp_session(context: SessionContext) -> Session:
    """Open a session of an `mcp` arm.

    A server that does not start, or is not ready in time, is the arm's failure: the session
    opens, and its answers are `infra`.

    Raises:
        ConfigError: The arm is no `mcp` arm, a declared file is missing, or a variable that a
            header needs is not set.
        UsageError: The scratch folder lies inside a git repository.
        StorageError: The scratch folder cannot be written.
        RepositoryError: The corpus cannot be read.
    """
    return open_per_base(context, _open)


def _open(context: SessionContext, root: Path | None) -> WorkspaceSession:
    arm = context.arm
    if not isinstance(arm, McpArm):
        raise ConfigError(f"arm {arm.name!r} is of kind {arm.kind!r}, not `mcp`")
    require_variables(arm)
    workspace = open_workspace(context, arm, root=root)
    session = McpSession(context=context, arm=arm, workspace=workspace)
    return begin_session(session, context)


@dataclass(slots=True, eq=False, kw_only=True)
class McpSession:
    """One MCP server, started again when it dies."""

    context: SessionContext
    arm: McpArm
    workspace: Workspace
    _start: SessionStart = field(default_factory=SessionStart)
    _server: ServerConnection | None = None
    _listener: ListeningServer | None = None
    _settings: HttpSettings | None = None
    _starts: Starts = field(default_factory=Starts)
    _stray_lines: int = 0
    _end: SessionEnd | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _aborted: threading.Event = field(default_factory=threading.Event)

    @property
    def start(self) -> SessionStart:
        """How the session came up; of a restarted one, how it came up first."""
        return self._start

    def open(self) -> None:
        """Start and prepare the server for the first time."""
        self._start = replace(self._start_server(), corpus_dir=self.workspace.corpus_dir)

    def ask(self, question: Question) -> Reply:
        """Answer one question; see `Session.ask`."""
        with self._busy:
            return ask_with_retries(lambda: self._try(question), retries=self.arm.retries)

    def abort(self) -> None:
        """Kill the process group, from any thread."""
        self._aborted.set()
        with self._lock:
            if self._listener is not None:
                self._listener.kill()
            if self._server is not None:
                self._server.kill()

    def close(self) -> SessionEnd:
        """End the server, and look at what was left behind."""
        with self._busy:
            if self._end is None:
                self._end_server(grace_seconds=0 if self._aborted.is_set() else LEAVE_SECONDS)
                left = self.workspace.finish(self.arm.writes)
                noise: tuple[str, ...] = ()
                if self._stray_lines:
                    lines, are = ("line", "is") if self._stray_lines == 1 else ("lines", "are")
                    noise = (f"wrote {self._stray_lines} {lines} to stdout that {are} no message",)
                self._end = replace(
                    left, warnings=(*noise, *left.warnings), restarts=self._starts.restarts
                )
            return self._end

    def _start_server(self) -> SessionStart:
        """Start and prepare the server; a failure is kept for the next answer."""
        began = time.monotonic()
        self._starts.begin()
        name: str | None = None
        ready = began
        try:
            server = ServerConnection(
                transport=self._open_transport(), root=self.workspace.corpus_dir
            )
            with self._lock:
                self._server = server
                if self._aborted.is_set():
                    server.kill()
            greeting = server.open(timeout_seconds=self.arm.startup_timeout_seconds)
            name, ready = greeting.name, time.monotonic()
            for tool in (*(call.tool for call in self.arm.prepare), self.arm.tool):
                if tool not in greeting.tools:
                    raise ServerError(
                        f"the server has no tool {tool!r}, but {', '.join(greeting.tools)}"
                    )
            for call in self.arm.prepare:
                self._prepare(server, call)
            self._starts.succeed()
        except ServerError as error:
            self._starts.fail(f"the session did not start: {error}")
            self._end_server()
        return SessionStart(
            startup_seconds=(ready if name else time.monotonic()) - began,
            indexing_seconds=time.monotonic() - ready if name else 0.0,
            name=name,
        )

    def _open_transport(self) -> Transport:
        """The way to the server; one that listens is started for it.

        Raises:
            ServerError: It did not start.
        """
        arm, workspace = self.arm, self.workspace
        if arm.url is None:
            return StdioTransport(
                argv=[fill_text(text, workspace.values) for text in arm.argv],
                cwd=workspace.cwd,
                environment=workspace.environment,
                log=workspace.log,
                max_line_bytes=arm.max_output_bytes,
            )
        if self._settings is None:
            self._settings = read_settings(arm)
        server = None
        if arm.argv:
            try:
                server = start_server(
                    arm.argv,
                    workspace,
                    timeout_seconds=arm.startup_timeout_seconds,
                    on_started=self._keep_listener,
                )
            except ServerStartError as error:
                raise ServerError(str(error)) from None
        port = "" if server is None else str(server.port)
        return HttpTransport(
            url=arm.url.replace("{port}", port),
            settings=self._settings,
            max_bytes=arm.max_output_bytes,
            server=server,
        )

    def _keep_listener(self, listener: ListeningServer) -> None:
        with self._lock:
            self._listener = listener
            if self._aborted.is_set():
                listener.kill()

    def _prepare(self, server: ServerConnection, call: ToolCall) -> None:
        """Call a tool until it says it is ready. Raises ServerError when it never does."""
        deadline = time.monotonic() + call.timeout_seconds
        arguments = fill_arguments(call.arguments, self.workspace.values, self._numbers())
        while True:
            left = max(0.01, deadline - time.monotonic())
            try:
                result = server.call(call.tool, arguments, timeout_seconds=left)
            except ServerTimeoutError:
                raise ServerError(
                    f"{call.tool!r} did not return within {call.timeout_seconds:g} s"
                ) from None
            said = self._conceal(_result_text(result))
            if self._is_ready(call, result, said):
                return
            if time.monotonic() + call.every_seconds >= deadline:
                raise ServerError(
                    f"{call.tool!r} was not ready after {call.timeout_seconds:g} s; it last said "
                    f"{shorten(said, SAID_LENGTH)}"
                )
            if self._aborted.wait(call.every_seconds):
                raise ServerError("the session was ended")

    def _is_ready(self, call: ToolCall, result: CallToolResult, said: str) -> bool:
        """Whether a preparing call is done; raises ServerError on an error that will not pass."""
        if call.until is not None:
            return re.search(call.until, said, re.IGNORECASE) is not None
        is_waiting = len(said) <= SHORT_TEXT and any(
            re.search(pattern, said, re.IGNORECASE) for pattern in self.arm.infra_patterns
        )
        if result.isError and not is_waiting:
            raise ServerError(f"{call.tool!r} failed: {shorten(said, SAID_LENGTH)}")
        return not is_waiting

    def _try(self, question: Question) -> Tried:
        failure = self._ensure_server()
        server = self._server
        if failure is not None or server is None:
            return self._infra(failure or "the session was ended", log_start=0)
        log_start = self.workspace.log_size()
        values = {**self.workspace.values, **question_values(question.query), "id": question.id}
        arguments = fill_arguments(self.arm.arguments, values, self._numbers())
        began = time.monotonic()
        try:
            result = server.call(self.arm.tool, arguments, timeout_seconds=self.arm.timeout_seconds)
        except ServerError as error:
            seconds = time.monotonic() - began
            if isinstance(error, ServerTimeoutError) or not server.is_alive:
                self._end_server()
            return self._infra(str(error), log_start=log_start, seconds=seconds)
        seconds = time.monotonic() - began
        return self._read_result(question, arguments, result, seconds, log_start)

    def _read_result(
        self,
        question: Question,
        arguments: dict[str, Any],
        result: CallToolResult,
        seconds: float,
        log_start: int,
    ) -> Tried:
        raw = self._conceal(result.model_dump_json(by_alias=True, exclude_none=True))
        event = ComponentEvent(
            name=self.arm.tool,
            position=0,
            arguments_digest=digest_arguments(arguments),
            returned_bytes=len(raw.encode("utf-8")),
        )
        failure: str | None
        if result.isError:
            said = self._conceal(_result_text(result))
            failure = f"the tool reports an error: {shorten(said, SAID_LENGTH)}"
        else:
            echoes = tuple(question_values(question.query).values())
            failure = find_failure(raw, self.arm, echoes=echoes) or find_misreading(
                raw, self.arm, answer=self.context.answer, corpus_dir=self.workspace.corpus_dir
            )
        if failure is not None:
            return replace(
                self._infra(failure, log_start=log_start, seconds=seconds), raw=raw, events=(event,)
            )
        parsed = parse_answer(
            raw, self.arm, answer=self.context.answer, corpus_dir=self.workspace.corpus_dir
        )
        is_abstention = parsed.abstained and parsed.problem is None
        return Tried(
            status="abstained" if is_abstention else "answered",
            raw=raw,
            seconds=seconds,
            events=(event,),
        )

    def _ensure_server(self) -> str | None:
        """Have a live, prepared server, or say why there is none."""
        if self._aborted.is_set():
            return "the session was ended"
        if self._server is not None:
            if self._server.is_alive:
                return None
            self._end_server()
        elif self._starts.refusal is not None:
            return self._starts.refusal
        self._start_server()
        return "the session was ended" if self._aborted.is_set() else self._starts.failure

    def _conceal(self, text: str) -> str:
        return text if self._settings is None else self._settings.conceal(text)

    def _infra(self, reason: str, *, log_start: int, seconds: float = 0.0) -> Tried:
        return Tried(
            status="infra",
            reason=self._conceal(reason),
            stderr=self.workspace.read_log(since=log_start),
            seconds=seconds,
            is_final=self._aborted.is_set(),
        )

    def _end_server(self, *, grace_seconds: float = 0.0) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close(grace_seconds=grace_seconds)
            self._stray_lines += server.stray_lines

    def _numbers(self) -> dict[str, int]:
        return {"k": self.context.k, "seed": self.context.seed}


def _result_text(result: CallToolResult) -> str:
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    return "\n".join(texts) if texts else str(result.structuredContent or "")
