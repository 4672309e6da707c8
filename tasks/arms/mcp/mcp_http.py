"""An MCP server over streamable HTTP: the SDK's own transport, watched.

The SDK follows a broken stream up by itself or waits for an answer that will not come; here
whatever breaks off, grows without limit or has another status ends the connection, with the
reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
from mcp.client.streamable_http import streamable_http_client
from pydantic import ValidationError

from coldrun.tasks.arms.answer_text import shorten
from coldrun.tasks.arms.driver import ENDED
from coldrun.tasks.arms.mcp.mcp_connection import CALL_ERRORS, Streams, Transport
from coldrun.tasks.arms.service.exchange import describe_error, describe_status, redirect_target
from coldrun.tasks.arms.service.http_settings import HttpSettings
from coldrun.tasks.arms.service.own_server import ListeningServer
from coldrun.tasks.lib.concealment import conceal

SESSION_HEADER = "mcp-session-id"


@dataclass(slots=True, eq=False, kw_only=True)
class HttpTransport(Transport):
    """One endpoint, or one server that was started and listens."""

    url: str
    settings: HttpSettings
    max_bytes: int
    server: ListeningServer | None = None
    _is_open: bool = True
    _loop: asyncio.AbstractEventLoop | None = None
    _scope: anyio.CancelScope | None = None

    @property
    def is_alive(self) -> bool:
        """Whether nothing has gone wrong so far."""
        return (
            self._fault is None and self._is_open and (self.server is None or self.server.is_alive)
        )

    def describe_end(self) -> str:
        """What went wrong, in words."""
        if self.server is not None:
            self.server.wait_briefly()
            if not self.server.is_alive and self._fault != ENDED:
                return self.server.describe_end()
        return self._fault or "the server closed the connection"

    def kill(self) -> None:
        """Give the connection up at once, and kill the server, from any thread."""
        self._give_up(ENDED)
        if self.server is not None:
            self.server.kill()

    async def on_message(self, message: Any) -> None:
        """An answer that the SDK could not read."""
        if isinstance(message, ValidationError):
            problems = message.errors(include_input=False, include_url=False)
            self._give_up(f"malformed output: {'; '.join(item['msg'] for item in problems[:3])}")
        elif isinstance(message, Exception):
            self._give_up(f"malformed output: {shorten(conceal(str(message)))}")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Streams]:
        """Open the streams; see `Transport.connect`."""
        # The SDK logs with tracebacks what is a reason in the answer's record here.
        logging.getLogger("mcp.client.streamable_http").setLevel(logging.CRITICAL)
        try:
            with anyio.CancelScope() as scope:
                self._arm(scope)
                try:
                    async with (
                        self._client() as client,
                        streamable_http_client(
                            self.url, http_client=client, terminate_on_close=False
                        ) as (incoming, outgoing, session_id),
                    ):
                        yield incoming, outgoing
                        await self._say_goodbye(client, session_id())
                except* (httpx.HTTPError, httpx.InvalidURL, *CALL_ERRORS) as group:
                    self._note(describe_error(group.exceptions[0]))
        finally:
            self._is_open = False
            if self.server is not None:
                if self._fault not in (None, ENDED):
                    self.server.wait_briefly()
                self.server.end()

    def _arm(self, scope: anyio.CancelScope) -> None:
        """From now on `kill` can end the connection."""
        with self._lock:
            self._loop, self._scope = asyncio.get_running_loop(), scope
            if self._fault is not None:
                scope.cancel()

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=_WatchedTransport(self.settings.transport(), self.max_bytes, self._give_up),
            headers=self.settings.headers,
            timeout=None,  # noqa: S113 - each call has its own limit
            trust_env=False,
        )

    async def _say_goodbye(self, client: httpx.AsyncClient, session_id: str | None) -> None:
        if session_id is None or not self.grace_seconds:
            return
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(self.grace_seconds):
                await client.delete(self.url, headers={SESSION_HEADER: session_id})

    def _note(self, fault: str) -> None:
        """Keep the first thing that went wrong."""
        if self._fault is None:
            self._fault = conceal(fault)

    def _give_up(self, fault: str) -> None:
        with self._lock:
            self._note(fault)
            if self._loop is not None and self._scope is not None and self._is_open:
                with contextlib.suppress(RuntimeError):  # The loop is closed already.
                    self._loop.call_soon_threadsafe(self._scope.cancel)


@dataclass(slots=True, eq=False)
class _WatchedTransport(httpx.AsyncBaseTransport):
    """Tells what goes wrong with the requests that carry messages."""

    inner: httpx.AsyncBaseTransport
    max_bytes: int
    on_fault: Callable[[str], None]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "POST":
            return await self.inner.handle_async_request(request)
        try:
            response = await self.inner.handle_async_request(request)
        except httpx.HTTPError as error:
            self.on_fault(describe_error(error))
            raise
        response.request = request
        if not (response.is_success or _stays(request, response)):
            self.on_fault(describe_status(response))
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _WatchedStream(response.stream, self.max_bytes, self.on_fault)
        return response

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass(slots=True, eq=False)
class _WatchedStream(httpx.AsyncByteStream):
    """Tells when an answer breaks off or grows too long."""

    inner: httpx.AsyncByteStream
    max_bytes: int
    on_fault: Callable[[str], None]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self.inner:
                size += len(chunk)
                if size > self.max_bytes:
                    reason = f"sent more than {self.max_bytes} bytes for one answer"
                    self.on_fault(reason)
                    raise httpx.ReadError(reason)
                yield chunk
        except httpx.HTTPError as error:
            self.on_fault(describe_error(error))
            raise

    async def aclose(self) -> None:
        await self.inner.aclose()


def _stays(request: httpx.Request, response: httpx.Response) -> bool:
    """Whether a redirect is one that the SDK follows: the same message, to the same server."""
    there, here = redirect_target(response), request.url
    if response.status_code not in (307, 308) or there is None:
        return False
    return (there.scheme, there.host, there.port) == (here.scheme, here.host, here.port)
