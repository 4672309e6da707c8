"""An HTTP service, one POST of JSON per question, and what `chat` arms have in common with it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.driver import Driver
from coldrun.tasks.arms.service.exchange import Exchanger
from coldrun.tasks.arms.service.http_kind import HttpArm
from coldrun.tasks.arms.service.http_settings import read_settings
from coldrun.tasks.arms.service.own_server import ListeningServer, start_server
from coldrun.tasks.arms.templates import fill_arguments
from coldrun.tasks.arms.usage import describe_call
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.config import ServerArm
from coldrun.tasks.lib.records import Question, Reply, SessionStart

Arm = TypeVar("Arm", bound=ServerArm)


class EndpointDriver(Driver[Arm]):
    """Posts JSON to the arm's `url`; `argv` starts the server there, and again when it dies."""

    def __init__(self, context: SessionContext, workspace: Workspace, aborted: threading.Event):
        super().__init__(context, workspace, aborted)
        self._exchanger = Exchanger(read_settings(self.arm), self.arm.max_output_bytes)
        self.hold(self._exchanger)
        self._server: ListeningServer | None = None

    def start(self) -> SessionStart:
        """Start the server, if there is one to start."""
        if self.arm.argv:
            self._server = start_server(self)
            settings = self._exchanger.settings
            self._exchanger.settings = replace(settings, relay=self._server.relay)
        return SessionStart()

    def check(self) -> None:
        """A server may have died between questions."""
        self.is_broken = self._server is not None and not self._server.is_alive

    def post(self, path: str, body: Any) -> Reply:
        """Post JSON to the address with `path` added to it; see `Exchanger.post`."""
        server = self._server
        port = "" if server is None else str(server.port)
        url = (self.arm.url or "").replace("{port}", port)
        posted = self._exchanger.post(url + path, body, timeout_seconds=self.arm.timeout_seconds)
        if server is None or posted.reason is None or posted.raw is not None:
            return posted
        # It hangs, died or broke off: what is left of it cannot be trusted with the next one.
        self.is_broken = True
        server.wait_briefly()
        return posted if server.is_alive else replace(posted, reason=server.describe_end())

    def end(self, *, grace_seconds: float = 0.0) -> None:  # noqa: ARG002
        """End the server; it has nothing to say goodbye to."""
        server, self._server = self._server, None
        if server is not None:
            self.let_go(server)
            server.end()


class HttpDriver(EndpointDriver[HttpArm]):
    """The service of one session."""

    def ask(self, question: Question, _: Sequence[Reply]) -> Reply:
        """Post the question."""
        numbers = {"k": question.k, "seed": question.seed}
        body = fill_arguments(self.arm.body, self.values_of(question), numbers)
        reply = self.post("", body)
        return replace(reply, events=(describe_call("http", body, reply.raw),))
