"""A connection to one MCP server over stdio: the official SDK on an event loop of its own.

The SDK's own stdio transport passes on variables of the user's and lets a line grow without
limit; this one starts the server in a process group, with the environment it is given and no
more, and can be killed from any thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import ClientSession
from mcp.shared.context import RequestContext
from mcp.shared.exceptions import McpError
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolResult,
    Implementation,
    JSONRPCMessage,
    ListRootsResult,
    Root,
)
from pydantic import FileUrl, ValidationError

from tasks.run.process import describe_exit, kill_group

DRAIN_SECONDS = 0.2
CALL_ERRORS = (
    McpError,
    RuntimeError,
    ValueError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
)
"""What the SDK raises when a server refuses, ends, or gives what does not fit its own schemas."""


class ServerError(Exception):
    """The server failed: it did not start, ended, or broke the protocol; the text says how."""


class ServerTimeoutError(ServerError):
    """The server did not answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerGreeting:
    """What a server said of itself: its name with its version, and the names of its tools."""

    name: str
    tools: tuple[str, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class ServerConnection:
    """One running server. `open` it once; calls come from one thread at a time."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    log: Path
    max_line_bytes: int
    root: str | None = None
    stray_lines: int = 0
    _loop: asyncio.AbstractEventLoop | None = None
    _session: ClientSession | None = None
    _stop: asyncio.Event | None = None
    _thread: threading.Thread | None = None
    _process: asyncio.subprocess.Process | None = None
    _fault: str | None = None
    _grace_seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_killed: bool = False
    _is_gone: bool = False

    def open(self, *, timeout_seconds: float) -> ServerGreeting:
        """Start the server, shake hands and ask for its tools.

        Raises:
            ServerError: It cannot be started, ended, or did not answer in time.
        """
        ready: concurrent.futures.Future[ServerGreeting] = concurrent.futures.Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._live(ready)), name="mcp", daemon=True
        )
        self._thread.start()
        try:
            return ready.result(timeout_seconds)
        except concurrent.futures.TimeoutError:
            raise ServerTimeoutError(
                f"the session was not ready after {timeout_seconds:g} s"
            ) from None

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
            raise ServerError(self.describe_end())
        pending = asyncio.run_coroutine_threadsafe(session.call_tool(tool, dict(arguments)), loop)
        try:
            return pending.result(timeout_seconds)
        except concurrent.futures.TimeoutError:
            pending.cancel()
            raise ServerTimeoutError(f"timed out after {timeout_seconds:g} s") from None
        except concurrent.futures.CancelledError:
            raise ServerError(self.describe_end()) from None
        except CALL_ERRORS as error:
            if not self.is_alive:
                raise ServerError(self.describe_end()) from None
            if isinstance(error, McpError):
                raise ServerError(f"the server refused {tool!r}: {error.error.message}") from None
            raise ServerError(f"malformed output: {error}") from None

    @property
    def is_alive(self) -> bool:
        """Whether the server still runs and keeps to the protocol."""
        process = self._process
        return process is not None and process.returncode is None and self._fault is None

    def describe_end(self) -> str:
        """How the server ended, in words."""
        if self._fault is not None:
            return self._fault
        code = None if self._process is None else self._process.returncode
        return "the server closed its output" if code is None else describe_exit(code)

    def close(self, *, grace_seconds: float = 0.0) -> None:
        """End the server and its process group; with a grace, let it leave by itself first."""
        self._grace_seconds = grace_seconds
        if not grace_seconds:
            self.kill()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed already.
                loop.call_soon_threadsafe(stop.set)
        if self._thread is not None:
            self._thread.join(timeout=grace_seconds + 10)

    def kill(self) -> None:
        """Kill the process group at once, from any thread."""
        with self._lock:
            self._is_killed = True
            if self._process is not None and not self._is_gone:
                kill_group(self._process.pid)

    async def _live(self, ready: concurrent.futures.Future[ServerGreeting]) -> None:
        """The whole life of the connection, on its own loop."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            process = await self._spawn()
        except (OSError, ValueError) as error:
            ready.set_exception(ServerError(f"{self.argv[0]!r} cannot be started: {error}"))
            return
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        pumps = [
            asyncio.create_task(self._read(process, to_session)),
            asyncio.create_task(self._write(process, from_session)),
        ]
        try:
            async with ClientSession(
                incoming,
                outgoing,
                list_roots_callback=self._list_roots,
                client_info=Implementation(name="coldrun", version="1"),
            ) as session:
                self._session = session
                await self._greet(session, ready)
                if ready.exception() is None:
                    await self._stop.wait()
        finally:
            self._session = None
            if not ready.done():
                ready.set_exception(ServerError(self.describe_end()))
            await self._end(process)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            await _drain(process)
            for stream in (to_session, incoming, outgoing, from_session):
                stream.close()

    async def _spawn(self) -> asyncio.subprocess.Process:
        with self.log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *self.argv,
                cwd=self.cwd,
                env=dict(self.environment),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=self.max_line_bytes,
                start_new_session=True,
            )
        with self._lock:
            self._process = process
            if self._is_killed:
                kill_group(process.pid)
        return process

    async def _greet(
        self, session: ClientSession, ready: concurrent.futures.Future[ServerGreeting]
    ) -> None:
        try:
            server = (await session.initialize()).serverInfo
            tools: list[str] = []
            page = await session.list_tools()
            tools += [tool.name for tool in page.tools]
            while page.nextCursor:
                page = await session.list_tools(cursor=page.nextCursor)
                tools += [tool.name for tool in page.tools]
        except CALL_ERRORS as error:
            reason = str(error) if self.is_alive else self.describe_end()
            ready.set_exception(ServerError(reason))
            return
        ready.set_result(
            ServerGreeting(name=f"{server.name} {server.version}".strip(), tools=tuple(tools))
        )

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        to_session: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        if process.stdout is None:
            return
        ended = asyncio.create_task(process.wait())
        try:
            while True:
                line = await self._read_line(process.stdout, ended)
                if not line:
                    break
                try:
                    message = JSONRPCMessage.model_validate_json(line)
                except ValidationError:
                    self.stray_lines += 1
                    continue
                await to_session.send(SessionMessage(message))
        except ValueError:
            self._fault = f"wrote more than {self.max_line_bytes} bytes for one answer"
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return
        finally:
            ended.cancel()
            # The process may be gone a moment before its exit code is known.
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), DRAIN_SECONDS)
            to_session.close()

    async def _read_line(self, output: asyncio.StreamReader, ended: asyncio.Task[int]) -> bytes:
        """The next line; empty at the end, also while a grandchild keeps the pipe open."""
        reading = asyncio.ensure_future(output.readline())
        try:
            await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await asyncio.wait({reading}, timeout=DRAIN_SECONDS)
            return await reading if reading.done() else b""
        finally:
            reading.cancel()

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        from_session: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        if process.stdin is None:
            return
        with contextlib.suppress(anyio.ClosedResourceError, ConnectionError):
            async for item in from_session:
                text = item.message.model_dump_json(by_alias=True, exclude_none=True)
                process.stdin.write(text.encode("utf-8") + b"\n")
                await process.stdin.drain()

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        if self._grace_seconds:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), self._grace_seconds)
        self.kill()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        with self._lock:
            self._is_gone = True

    async def _list_roots(
        self,
        context: RequestContext[ClientSession, Any],  # noqa: ARG002
    ) -> ListRootsResult:
        roots = [] if self.root is None else [Root(uri=FileUrl(Path(self.root).as_uri()))]
        return ListRootsResult(roots=roots)


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Read what a dead server left in its pipe: asyncio closes a pipe only at its end."""
    if process.stdout is None:
        return
    with contextlib.suppress(asyncio.TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while await process.stdout.read(1 << 16):
                pass
