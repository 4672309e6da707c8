"""An MCP server over stdio, in a process group of its own.

The SDK's own stdio transport passes on variables of the user's and lets a line grow without
limit; this one starts the server with the environment it is given and no more, and can be killed
from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage
from pydantic import ValidationError

from coldrun.tasks.arms.base import Corpus, CorpusTree, SessionContext
from coldrun.tasks.arms.mcp.mcp_connection import (
    SAID_LENGTH,
    ServerConnection,
    ServerError,
    Streams,
    Transport,
)
from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from coldrun.tasks.arms.templates import fill_text
from coldrun.tasks.arms.workspace.isolation import LOG_TAIL_BYTES, Workspace, open_workspace
from coldrun.tasks.lib.machine.child_process import (
    Child,
    ChildEndedError,
    ChildOversizedError,
    describe_exit,
    spawn_child,
)

WRITE_SECONDS = 0.2
"""How long what was sent last is still written when the connection ends."""


@dataclass(slots=True, eq=False, kw_only=True)
class StdioTransport(Transport):
    """One server process, spoken to on its standard input and output."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    log: Path
    max_line_bytes: int
    _child: Child | None = None
    _is_killed: bool = False

    @property
    def is_alive(self) -> bool:
        """Whether the server still runs and keeps to the protocol."""
        return self._child is not None and self._child.is_alive and self._fault is None

    def describe_end(self) -> str:
        """How the server ended, in words."""
        if self._fault is not None:
            return self._fault
        code = None if self._child is None else self._child.process.poll()
        return "the server closed its output" if code is None else describe_exit(code)

    def kill(self) -> None:
        """Kill the process group at once, from any thread."""
        with self._lock:
            self._is_killed = True
            if self._child is not None:
                self._child.kill()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Streams]:
        """Start the server; see `Transport.connect`."""
        try:
            child = spawn_child(self.argv, cwd=self.cwd, env=self.environment, log=self.log)
        except (OSError, ValueError) as error:
            raise ServerError(f"{self.argv[0]!r} cannot be started: {error}") from None
        with self._lock:
            self._child = child
            if self._is_killed:
                child.kill()
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        reading = asyncio.create_task(self._read(child, to_session))
        writing = asyncio.create_task(_write(child, from_session))
        try:
            yield incoming, outgoing
        finally:
            for stream in (to_session, incoming, outgoing, from_session):
                stream.close()
            await asyncio.wait({writing}, timeout=WRITE_SECONDS)
            if self.grace_seconds and writing.done() and child.process.stdin is not None:
                child.process.stdin.close()
                await asyncio.to_thread(child.wait, self.grace_seconds)
            child.kill()
            await asyncio.gather(reading, writing, return_exceptions=True)
            child.end()

    async def _read(
        self, child: Child, to_session: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """Pass on messages until the output ends, from a thread that waits for lines."""
        try:
            while True:
                line = await asyncio.to_thread(
                    child.read_line, deadline=math.inf, max_bytes=self.max_line_bytes
                )
                try:
                    message = JSONRPCMessage.model_validate_json(line)
                except ValidationError:
                    self.stray_lines += 1
                    continue
                await to_session.send(SessionMessage(message))
        except ChildOversizedError:
            self._fault = f"wrote more than {self.max_line_bytes} bytes for one answer"
            self.kill()
        except (ChildEndedError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return
        finally:
            to_session.close()


async def _write(child: Child, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    if child.process.stdin is None:
        return
    pipe = child.process.stdin.fileno()
    os.set_blocking(pipe, True)
    with (
        contextlib.suppress(anyio.ClosedResourceError, OSError),
        os.fdopen(pipe, "wb", closefd=False) as output,
    ):
        async for item in from_session:
            text = item.message.model_dump_json(by_alias=True, exclude_none=True)
            await asyncio.to_thread(output.write, text.encode("utf-8") + b"\n")
            await asyncio.to_thread(output.flush)


def stdio_transport(arm: McpArm, workspace: Workspace) -> StdioTransport:
    """The way to the server that an arm's command line starts in a session."""
    return StdioTransport(
        argv=workspace.command([fill_text(text, workspace.values) for text in arm.argv]),
        cwd=workspace.cwd,
        environment=workspace.environment,
        log=workspace.log,
        max_line_bytes=arm.max_output_bytes,
    )


def list_tools(arm: McpArm, *, scratch: Path) -> Mapping[str, Mapping[str, Any]]:
    """The tools that a server over stdio has, each with the JSON schema of its arguments.

    The server is started as in a session, with an empty folder in place of the corpus, and ended.

    Raises:
        ServerError: It did not start; the text ends with the last that it logged.
    """
    arm = arm.model_copy(update={"has_corpus": False, "cwd": "{corpus}"})
    context = SessionContext(
        arm=arm,
        corpus=Corpus(trees={".": CorpusTree(git_dir=scratch, commit="", tree="")}),
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
    try:
        transport = stdio_transport(arm, workspace)
        server = ServerConnection(transport=transport, root=workspace.corpus_dir, log=workspace.log)
        try:
            return server.open(timeout_seconds=arm.startup_timeout_seconds).tools
        except ServerError as error:
            said = " ".join((workspace.output.read(limit=LOG_TAIL_BYTES) or "").split())
            reason, last = str(error)[:SAID_LENGTH], said[-SAID_LENGTH:]
            raise ServerError(f"{reason}; it said …{last}" if said else reason) from None
        finally:
            server.close()
    except OSError as error:
        raise ServerError(f"{arm.argv[0]!r} cannot be started: {error}") from None
    finally:
        workspace.finish()
