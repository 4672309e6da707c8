"""A connection to one MCP server: the official SDK on an event loop of its own.

How the messages get there is the transport's matter: `stdio` or `http`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import ClientSession
from mcp.shared.context import RequestContext
from mcp.shared.exceptions import McpError
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, Implementation, ListRootsResult, Root
from pydantic import FileUrl

from coldrun.tasks.lib.library_logs import log_to

CALL_ERRORS = (
    McpError,
    RuntimeError,
    ValueError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
)
"""What the SDK raises when a server refuses, ends, or gives what does not fit its own schemas."""

SAID_LENGTH = 300
"""How much of what a server or a tool said stands in a reason, in characters."""

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerError(Exception):
    """The server failed: it did not start, ended, or broke the protocol; the text says how."""


class ServerTimeoutError(ServerError):
    """The server did not answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerGreeting:
    """What a server said of itself: its name with its version, and its tools, each with the JSON
    schema of its arguments."""

    name: str
    tools: Mapping[str, Mapping[str, Any]]


@dataclass(slots=True, eq=False, kw_only=True)
class Transport(ABC):
    """The way to one server. `connect` runs on the connection's loop, the rest on any thread.

    Attributes:
        stray_lines: How many lines came that are not a message.
        grace_seconds: How long the server may take to leave by itself when the connection ends.
    """

    stray_lines: int = 0
    grace_seconds: float = 0.0
    _fault: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @abstractmethod
    def connect(self) -> AbstractAsyncContextManager[Streams]:
        """Start or reach the server; what arrives, and what is sent. Ends it when left.

        Raises:
            ServerError: It cannot be started.
        """

    async def on_message(self, message: Any) -> None:  # noqa: B027 - there may be nothing to do
        """Look at what the SDK has no place for: errors in what arrived."""

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether the server can be asked, and keeps to the protocol."""

    @abstractmethod
    def describe_end(self) -> str:
        """What went wrong, or how the server ended, in words."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once."""


@dataclass(slots=True, eq=False, kw_only=True)
class ServerConnection:
    """One server. `open` it once; calls come from one thread at a time."""

    transport: Transport
    root: str | None = None
    log: Path | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _session: ClientSession | None = None
    _stop: asyncio.Event | None = None
    _thread: threading.Thread | None = None
    _ended: concurrent.futures.Future[None] = field(default_factory=concurrent.futures.Future)

    def open(self, *, timeout_seconds: float) -> ServerGreeting:
        """Start the server, shake hands and ask for its tools.

        Raises:
            ServerError: It cannot be started, ended, or did not answer in time.
        """
        ready: concurrent.futures.Future[ServerGreeting] = concurrent.futures.Future()
        self._thread = threading.Thread(target=lambda: self._run(ready), name="mcp", daemon=True)
        self._thread.start()
        try:
            return ready.result(timeout_seconds)
        except concurrent.futures.TimeoutError:
            raise ServerTimeoutError(f"it was not ready after {timeout_seconds:g} s") from None

    def call(
        self, tool: str, arguments: Mapping[str, Any], *, timeout_seconds: float
    ) -> CallToolResult:
        """Call a tool.

        Raises:
            ServerError: The server ended, refused the call, or broke the protocol.
            ServerTimeoutError: It did not answer in time.
        """
        loop, session = self._loop, self._session
        if loop is None or session is None or not self.is_alive:
            raise ServerError(self.transport.describe_end())
        pending = asyncio.run_coroutine_threadsafe(session.call_tool(tool, dict(arguments)), loop)
        try:
            return self._wait(pending, timeout_seconds)
        except concurrent.futures.TimeoutError:
            pending.cancel()
            raise ServerTimeoutError(f"timed out after {timeout_seconds:g} s") from None
        except (concurrent.futures.CancelledError, *CALL_ERRORS) as error:
            if isinstance(error, concurrent.futures.CancelledError) or not self.is_alive:
                raise ServerError(self.transport.describe_end()) from None
            if isinstance(error, McpError):
                raise ServerError(f"the server refused {tool!r}: {error.error.message}") from None
            raise ServerError(f"malformed output: {error}") from None

    def _wait(
        self, pending: concurrent.futures.Future[CallToolResult], timeout_seconds: float
    ) -> CallToolResult:
        """The result of a call; a connection that ends meanwhile cancels it."""
        either: list[concurrent.futures.Future[Any]] = [pending, self._ended]
        concurrent.futures.wait(
            either, timeout=timeout_seconds, return_when=concurrent.futures.FIRST_COMPLETED
        )
        if not pending.done() and self._ended.done():
            pending.cancel()
        return pending.result(0)

    @property
    def is_alive(self) -> bool:
        """Whether the server still runs and keeps to the protocol."""
        return self.transport.is_alive

    def close(self, *, grace_seconds: float = 0.0) -> None:
        """End the server; with a grace, let it leave by itself first."""
        self.transport.grace_seconds = grace_seconds
        if not grace_seconds:
            self.kill()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed already.
                loop.call_soon_threadsafe(stop.set)
        if self._thread is not None:
            self._thread.join(timeout=grace_seconds + 10)

    def kill(self) -> None:
        """End the server at once, from any thread."""
        self.transport.kill()

    def _run(self, ready: concurrent.futures.Future[ServerGreeting]) -> None:
        log_to(self.log)
        try:
            asyncio.run(self._live(ready))
        finally:
            self._ended.set_result(None)

    async def _live(self, ready: concurrent.futures.Future[ServerGreeting]) -> None:
        """The whole life of the connection, on its own loop."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            async with self.transport.connect() as (incoming, outgoing):
                try:
                    await self._talk(incoming, outgoing, ready)
                finally:
                    self._session = None
                    if not ready.done():
                        ready.set_exception(ServerError(self.transport.describe_end()))
        except ServerError as error:
            if not ready.done():
                ready.set_exception(error)

    async def _talk(
        self,
        incoming: MemoryObjectReceiveStream[SessionMessage | Exception],
        outgoing: MemoryObjectSendStream[SessionMessage],
        ready: concurrent.futures.Future[ServerGreeting],
    ) -> None:
        async with ClientSession(
            incoming,
            outgoing,
            list_roots_callback=self._list_roots,
            message_handler=self.transport.on_message,
            client_info=Implementation(name="coldrun", version="1"),
        ) as session:
            self._session = session
            await self._greet(session, ready)
            if ready.exception() is None and self._stop is not None:
                await self._stop.wait()

    async def _greet(
        self, session: ClientSession, ready: concurrent.futures.Future[ServerGreeting]
    ) -> None:
        try:
            server = (await session.initialize()).serverInfo
            page = await session.list_tools()
            tools = {tool.name: tool.inputSchema for tool in page.tools}
            while page.nextCursor:
                page = await session.list_tools(cursor=page.nextCursor)
                tools |= {tool.name: tool.inputSchema for tool in page.tools}
        except CALL_ERRORS as error:
            reason = str(error) if self.is_alive else self.transport.describe_end()
            ready.set_exception(ServerError(reason))
            return
        ready.set_result(
            ServerGreeting(name=f"{server.name} {server.version}".strip(), tools=tools)
        )

    async def _list_roots(
        self,
        context: RequestContext[ClientSession, Any],  # noqa: ARG002
    ) -> ListRootsResult:
        roots = [] if self.root is None else [Root(uri=FileUrl(Path(self.root).as_uri()))]
        return ListRootsResult(roots=roots)
