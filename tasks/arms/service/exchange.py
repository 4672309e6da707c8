"""One POST of JSON: a deadline for the whole of it, a limit of size, and an end from any thread."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from coldrun.tasks.arms.answer_text import shorten
from coldrun.tasks.arms.driver import ENDED
from coldrun.tasks.arms.service.http_settings import HttpSettings
from coldrun.tasks.lib.concealment import conceal
from coldrun.tasks.lib.records import Reply
from coldrun.tasks.lib.safe_json import BadJsonError, load_json

EXCERPT_BYTES = 2000
"""How much of the body is read when the status is not a success."""


@dataclass(slots=True, eq=False)
class Exchanger:
    """Posts to an endpoint, one request at a time and each on a connection of its own; any thread
    may abort it for good."""

    settings: HttpSettings
    max_bytes: int
    _running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Reply]] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_aborted: bool = False

    def post(self, url: str, body: Any, *, timeout_seconds: float) -> Reply:
        """Post JSON and read the answer.

        Returns:
            What came back. A failure is `infra` with its reason, never an exception; `raw` is then
            the beginning of what the endpoint said, if it said anything.
        """
        began = time.monotonic()
        # Not `asyncio.run`, which waits for a name server that does not answer, however long.
        loop = asyncio.new_event_loop()
        try:
            task = loop.create_task(self._post(url, body, timeout_seconds))
            with self._lock:
                self._running = (loop, task)
                if self._is_aborted:
                    task.cancel()
            posted = loop.run_until_complete(task)
        except asyncio.CancelledError:
            posted = _fail(ENDED)
        finally:
            with self._lock:
                self._running = None
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        reason = None if posted.reason is None else conceal(posted.reason)
        return replace(posted, reason=reason, seconds=time.monotonic() - began)

    def kill(self) -> None:
        """End the request in flight; those that follow fail at once."""
        with self._lock:
            self._is_aborted = True
            if self._running is not None:
                loop, task = self._running
                loop.call_soon_threadsafe(task.cancel)

    async def _post(self, url: str, body: Any, timeout_seconds: float) -> Reply:
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = httpx.Headers({"Content-Type": "application/json"})
        headers.update(self.settings.headers)
        try:
            async with (
                asyncio.timeout(timeout_seconds),
                httpx.AsyncClient(
                    transport=self.settings.transport(),
                    headers=headers,
                    timeout=None,  # noqa: S113 - the limit is the whole exchange's
                    follow_redirects=False,
                    trust_env=False,
                ) as client,
                client.stream("POST", url, content=data) as response,
            ):
                if response.is_success:
                    return await self._read(response)
                # Concealed before it is shortened: half a secret is found no more.
                said = conceal(await _read_excerpt(response))
                return _fail(describe_status(response, said), said or None)
        except TimeoutError:
            return _fail(f"timed out after {timeout_seconds:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _fail(describe_error(error))

    async def _read(self, response: httpx.Response) -> Reply:
        data = bytearray()
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > self.max_bytes:
                return _fail(f"sent more than {self.max_bytes} bytes for one answer")
        try:
            text = data.decode(response.charset_encoding or "utf-8").removeprefix("\ufeff")
        except (UnicodeDecodeError, LookupError) as error:
            return _fail(f"malformed output: the answer is not text: {error}")
        text = conceal(text)
        is_chunked = "chunked" in response.headers.get("transfer-encoding", "").lower()
        has_known_end = is_chunked or "content-length" in response.headers
        if not has_known_end and not _is_json(text):
            return _fail(
                "malformed output: an answer without a Content-Length that is not JSON either may "
                f"have been cut off: {shorten(text)}",
                text,
            )
        return Reply(status="answered", raw=text)


def _fail(reason: str, said: str | None = None) -> Reply:
    return Reply(status="infra", reason=reason, raw=said)


def describe_status(response: httpx.Response, said: str = "") -> str:
    """A status other than success in words, with what the endpoint says about it."""
    code = response.status_code
    phrase = response.reason_phrase or httpx.codes.get_reason_phrase(code)
    words = f"the endpoint answered with status {code} {phrase}".rstrip()
    target = redirect_target(response)
    if target is not None:
        place = target.copy_with(userinfo=b"", query=None, fragment=None)
        words += f", to {place}; if that is the endpoint, name it in `url`"
    wait = response.headers.get("retry-after")
    if wait is not None:
        words += f", to be tried again after {shorten(wait)}"
    return f"{words}: {shorten(said)}" if said.strip() else words


def redirect_target(response: httpx.Response) -> httpx.URL | None:
    """Where a redirect leads; None without a redirect or with an invalid address."""
    if not response.has_redirect_location:
        return None
    try:
        return response.request.url.join(response.headers["location"])
    except httpx.InvalidURL:
        return None


def describe_error(error: Exception) -> str:
    """What went wrong on the way, in words."""
    said = " ".join(str(error).split()) or type(error).__name__
    match error:
        case httpx.ProxyError():
            return f"the proxy failed: {said}"
        case httpx.ConnectError():
            return f"cannot connect: {said}"
        case httpx.RemoteProtocolError() | httpx.ReadError():
            return f"the answer broke off: {said}"
        case httpx.DecodingError():
            return f"malformed output: {said}"
    return f"the request failed: {said}"


async def _read_excerpt(response: httpx.Response) -> str:
    """The beginning of a body; what breaks off meanwhile changes nothing."""
    data = bytearray()
    with contextlib.suppress(httpx.HTTPError):
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) >= EXCERPT_BYTES:
                break
    return data[:EXCERPT_BYTES].decode("utf-8", "replace")


def _is_json(text: str) -> bool:
    try:
        load_json(text, is_lenient=True)
    except BadJsonError:
        return False
    return True
