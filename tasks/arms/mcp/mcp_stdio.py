"""An MCP server over stdio, in a process group of its own.

The SDK's own stdio transport passes on variables of the user's and lets a line grow without
limit; this one starts the server with the environment it is given and no more, and can be killed
from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage
from pydantic import ValidationError

from coldrun.tasks.arms.base import Corpus, SessionContext
from coldrun.tasks.arms.mcp.mcp_connection import ServerConnection, ServerError, Streams
from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from coldrun.tasks.arms.templates import fill_text
from coldrun.tasks.arms.workspace.isolation import LOG_TAIL_BYTES, open_workspace
from coldrun.tasks.lib.machine.child_process import describe_exit, kill_group
from coldrun.tasks.lib.machine.sandbox import Mount

DRAIN_SECONDS = 0.2

SAID = 300
"""How much of what went wrong, and of what a server logged, stands in an error, in characters."""


@dataclass(slots=True, eq=False, kw_only=True)
class StdioTransport:
    """One server process, spoken to on its standard input and output."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    log: Path
    max_line_bytes: int
    stray_lines: int = 0
    grace_seconds: float = 0.0
    _process: asyncio.subprocess.Process | None = None
    _fault: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_killed: bool = False
    _is_gone: bool = False

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

    def kill(self) -> None:
        """Kill the process group at once, from any thread."""
        with self._lock:
            self._is_killed = True
            if self._process is not None and not self._is_gone:
                kill_group(self._process.pid)

    async def on_message(self, message: Any) -> None:
        """Does nothing: lines that are not a message never reach the SDK."""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Streams]:
        """Start the server; see `Transport.connect`."""
        try:
            process = await self._spawn()
        except (OSError, ValueError) as error:
            raise ServerError(f"{self.argv[0]!r} cannot be started: {error}") from None
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        pumps = [
            asyncio.create_task(self._read(process, to_session)),
            asyncio.create_task(self._write(process, from_session)),
        ]
        try:
            yield incoming, outgoing
        finally:
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
            # asyncio does not see the end of a process before its pipe is empty
            self.kill()
            await _drain(process)
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
        if self.grace_seconds:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), self.grace_seconds)
        self.kill()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        with self._lock:
            self._is_gone = True


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Read what a dead server left in its pipe: asyncio closes a pipe only at its end."""
    if process.stdout is None:
        return
    with contextlib.suppress(asyncio.TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while await process.stdout.read(1 << 16):
                pass


def list_tools(arm: McpArm, *, scratch: Path) -> Mapping[str, Mapping[str, Any]]:
    """The tools that a server over stdio has, each with the JSON schema of its arguments.

    The server is started as in a session, with an empty folder in place of the corpus, and ended.

    Raises:
        ServerError: It did not start; the text ends with the last that it logged.
    """
    context = SessionContext(
        arm=arm,
        corpus=Corpus(trees={}),
        answer="ranking",
        k=1,
        seed=0,
        trial=0,
        point=None,
        config_dir=scratch,
        scratch=scratch,
        run_id="tools",
    )
    workspace = open_workspace(context, arm)
    corpus = workspace.root / "corpus"
    corpus.mkdir()
    mounts = (*workspace.mounts, Mount(path=str(corpus), kind="write"))
    workspace = replace(workspace, cwd=corpus, mounts=mounts)
    values = {**workspace.values, "corpus": str(corpus)}
    try:
        server = ServerConnection(
            transport=StdioTransport(
                argv=workspace.command([fill_text(word, values) for word in arm.argv]),
                cwd=corpus,
                environment=workspace.environment,
                log=workspace.log,
                max_line_bytes=arm.max_output_bytes,
            ),
            root=str(corpus),
            log=workspace.log,
        )
        try:
            return server.open(timeout_seconds=arm.startup_timeout_seconds).tools
        except ServerError as error:
            said = " ".join((workspace.output.read(limit=LOG_TAIL_BYTES) or "").split())
            reason = str(error)[:SAID]
            raise ServerError(f"{reason}; it said …{said[-SAID:]}" if said else reason) from None
        finally:
            server.close()
    except OSError as error:
        raise ServerError(f"{arm.argv[0]!r} cannot be started: {error}") from None
    finally:
        workspace.finish()
