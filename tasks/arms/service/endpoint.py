"""What `http` and `chat` sessions talk to: an endpoint somewhere, or a server of their own."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.service.exchange import ENDED, Exchanger, Posted
from coldrun.tasks.arms.service.own_server import ListeningServer, ServerStartError, start_server
from coldrun.tasks.arms.service.settings import read_settings
from coldrun.tasks.arms.starts import Starts
from coldrun.tasks.arms.workspace.isolation import Workspace, open_workspace
from coldrun.tasks.config import ServerArm
from coldrun.tasks.lib.records import SessionEnd


@dataclass(slots=True, eq=False, kw_only=True)
class Endpoint:
    """Where the questions of one session go. A server that `argv` starts is started again when it
    dies; only the question in flight is lost."""

    arm: ServerArm
    workspace: Workspace
    exchanger: Exchanger
    _server: ListeningServer | None = None
    _starts: Starts = field(default_factory=Starts)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _aborted: threading.Event = field(default_factory=threading.Event)

    @property
    def is_aborted(self) -> bool:
        """Whether the session was ended."""
        return self._aborted.is_set()

    def open(self) -> float:
        """Start the server, if there is one to start.

        Returns:
            How long that took, in seconds. A failure is kept for the next answer.
        """
        began = time.monotonic()
        if self.arm.argv:
            self._start()
        return time.monotonic() - began

    def post(self, path: str, body: Any) -> Posted:
        """Post JSON to the address with `path` added to it; see `Exchanger.post`."""
        if self.arm.argv:
            failure = self._ensure_server()
            if failure is not None:
                return Posted(reason=failure)
        if self.is_aborted:
            return Posted(reason=ENDED)
        server = self._server
        port = "" if server is None else str(server.port)
        url = (self.arm.url or "").replace("{port}", port)
        posted = self.exchanger.post(url + path, body, timeout_seconds=self.arm.timeout_seconds)
        if posted.reason is None or server is None:
            return posted
        if posted.text is None:
            # It hangs, died or broke off: what is left of it cannot be trusted with the next one.
            server.wait_briefly()
            end = None if server.is_alive else server.describe_end()
            self._end_server()
            return posted if end is None or self.is_aborted else replace(posted, reason=end)
        return posted

    def abort(self) -> None:
        """End the request in flight and the server, from any thread."""
        self._aborted.set()
        self.exchanger.abort()
        with self._lock:
            if self._server is not None:
                self._server.kill()

    def close(self) -> SessionEnd:
        """End the server, and look at what was left behind."""
        self._end_server()
        left = self.workspace.finish(self.arm.writes)
        return replace(left, restarts=self._starts.restarts)

    def _ensure_server(self) -> str | None:
        """Have a live server, or say why there is none."""
        if self.is_aborted:
            return ENDED
        if self._server is not None:
            if self._server.is_alive:
                return None
            self._end_server()
        elif self._starts.refusal is not None:
            return self._starts.refusal
        self._start()
        return ENDED if self.is_aborted else self._starts.failure

    def _start(self) -> None:
        self._starts.begin()
        try:
            start_server(
                self.arm.argv,
                self.workspace,
                timeout_seconds=self.arm.startup_timeout_seconds,
                on_started=self._keep,
            )
        except ServerStartError as error:
            self._starts.fail(f"the session did not start: {error}")
            self._end_server()
        else:
            self._starts.succeed()

    def _keep(self, server: ListeningServer) -> None:
        with self._lock:
            self._server = server
            if self.is_aborted:
                server.kill()

    def _end_server(self) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.end()


def open_endpoint(context: SessionContext, arm: ServerArm, root: Path | None) -> Endpoint:
    """The endpoint of one session, in a workspace at `root` or at a new place; nothing is started
    or asked yet.

    Raises:
        ConfigError: A variable that a header needs is not set, a certificate cannot be read, or a
            declared file is missing.
        UsageError: The scratch folder lies inside a git repository.
        StorageError: The scratch folder cannot be written.
        RepositoryError: The corpus cannot be read.
    """
    workspace = open_workspace(context, arm, root=root)
    try:
        settings = read_settings(arm)
    except BaseException:
        workspace.finish()
        raise
    return Endpoint(
        arm=arm,
        workspace=workspace,
        exchanger=Exchanger(settings, arm.max_output_bytes),
    )
