"""An MCP server: prepared by calls of its tools, and asked by one more call per question."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from mcp.types import CallToolResult, TextContent

from coldrun.tasks.arms.answer_text import SHORT_TEXT, shorten
from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.driver import ENDED, Driver, StartError
from coldrun.tasks.arms.failures import find_misreading
from coldrun.tasks.arms.mcp.mcp_connection import (
    SAID_LENGTH,
    ServerConnection,
    ServerError,
    ServerTimeoutError,
    Transport,
)
from coldrun.tasks.arms.mcp.mcp_http import HttpTransport
from coldrun.tasks.arms.mcp.mcp_kind import McpArm, ToolCall
from coldrun.tasks.arms.mcp.mcp_stdio import stdio_transport
from coldrun.tasks.arms.parse import ParsedAnswer
from coldrun.tasks.arms.service.http_settings import read_settings
from coldrun.tasks.arms.service.own_server import start_server
from coldrun.tasks.arms.templates import fill_arguments
from coldrun.tasks.arms.usage import describe_call
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.lib.concealment import conceal
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.lib.records import Question, Reply, SessionStart


class McpDriver(Driver[McpArm]):
    """The server of one session."""

    def __init__(self, context: SessionContext, workspace: Workspace, aborted: threading.Event):
        super().__init__(context, workspace, aborted)
        self._settings = None if self.arm.url is None else read_settings(self.arm)
        self._numbers = {"k": context.k, "seed": context.seed}
        self._server: ServerConnection | None = None
        self._stray_lines = 0

    def start(self) -> SessionStart:
        """Start the server, and prepare it."""
        try:
            workspace, transport = self.workspace, self._open_transport()
            server = self._server = ServerConnection(
                transport=transport, root=workspace.corpus_dir, log=workspace.log
            )
            self.hold(server)
            greeting = server.open(timeout_seconds=self.arm.startup_timeout_seconds)
            self.name, began = greeting.name, time.monotonic()
            for tool in (*(call.tool for call in self.arm.prepare), self.arm.tool):
                if tool not in greeting.tools:
                    raise StartError(
                        f"the server has no tool {tool!r}, but {', '.join(greeting.tools)}"
                    )
            for call in self.arm.prepare:
                self._prepare(server, call)
        except ServerError as error:
            raise StartError(str(error)) from None
        except OSError as error:
            raise StartError(f"{self.arm.argv[0]!r} cannot be started: {error}") from None
        return SessionStart(name=self.name, indexing_seconds=time.monotonic() - began)

    def _open_transport(self) -> Transport:
        """The way to the server; one that listens is started for it."""
        arm = self.arm
        if arm.url is None or self._settings is None:
            return stdio_transport(arm, self.workspace)
        server = start_server(self) if arm.argv else None
        port = "" if server is None else str(server.port)
        return HttpTransport(
            url=arm.url.replace("{port}", port),
            settings=replace(self._settings, relay=None if server is None else server.relay),
            max_bytes=arm.max_output_bytes,
            server=server,
        )

    def _prepare(self, server: ServerConnection, call: ToolCall) -> None:
        """Call a tool until it says it is ready. Raises StartError when it never does."""
        deadline = time.monotonic() + call.timeout_seconds
        arguments = fill_arguments(call.arguments, self.workspace.values, self._numbers)
        while True:
            left = max(0.01, deadline - time.monotonic())
            try:
                result = server.call(call.tool, arguments, timeout_seconds=left)
            except ServerTimeoutError:
                raise StartError(
                    f"{call.tool!r} did not return within {call.timeout_seconds:g} s"
                ) from None
            said = conceal(_result_text(result))
            if self._is_ready(call, result, said):
                return
            if time.monotonic() + call.every_seconds >= deadline:
                raise StartError(
                    f"{call.tool!r} was not ready after {call.timeout_seconds:g} s; it last said "
                    f"{shorten(said, SAID_LENGTH)}"
                )
            if self.aborted.wait(call.every_seconds):
                raise StartError(ENDED)

    def _is_ready(self, call: ToolCall, result: CallToolResult, said: str) -> bool:
        """Whether a preparing call is done. Raises StartError on an error that will not pass."""
        if call.until is not None:
            return re.search(call.until, said, re.IGNORECASE) is not None
        is_waiting = len(said) <= SHORT_TEXT and any(
            re.search(pattern, said, re.IGNORECASE) for pattern in self.arm.infra_patterns
        )
        if result.isError and not is_waiting:
            raise StartError(f"{call.tool!r} failed: {shorten(said, SAID_LENGTH)}")
        return not is_waiting

    def check(self) -> None:
        """A server may have died between questions."""
        self.is_broken = self._server is None or not self._server.is_alive

    def ask(self, question: Question, _: Sequence[Reply]) -> Reply:
        """Call the tool."""
        arguments = fill_arguments(self.arm.arguments, self.values_of(question), self._numbers)
        server, tool = self._server, self.arm.tool
        if server is None:
            return Reply(status="infra", reason=ENDED)
        began = time.monotonic()
        try:
            result = server.call(tool, arguments, timeout_seconds=self.arm.timeout_seconds)
        except ServerError as error:
            self.is_broken = isinstance(error, ServerTimeoutError) or not server.is_alive
            return Reply(status="infra", reason=str(error))
        seconds = time.monotonic() - began
        raw = conceal(result.model_dump_json(by_alias=True, exclude_none=True))
        events = (describe_call(tool, arguments, raw),)
        if result.isError:
            reason = f"the tool reports an error: {shorten(_result_text(result), SAID_LENGTH)}"
            return Reply(status="infra", raw=raw, reason=reason, seconds=seconds, events=events)
        return Reply(status="answered", raw=raw, seconds=seconds, events=events)

    def find_fault(self, _: Reply, parsed: ParsedAnswer) -> str | None:
        """A result that names no file of the corpus was misread."""
        return find_misreading(parsed, self.arm, self.context, self.workspace.corpus_dir)

    def end(self, *, grace_seconds: float = 0.0) -> None:
        """End the server."""
        server, self._server = self._server, None
        if server is not None:
            self.let_go(server)
            server.close(grace_seconds=grace_seconds)
            self._stray_lines += server.transport.stray_lines

    def warnings(self) -> list[str]:
        """Whether it wrote to standard output what is not a message."""
        if not self._stray_lines:
            return []
        are = "is" if self._stray_lines == 1 else "are"
        return [f"wrote {counted(self._stray_lines, 'line')} to stdout that {are} no message"]


def _result_text(result: CallToolResult) -> str:
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    return "\n".join(texts) if texts else str(result.structuredContent or "")
