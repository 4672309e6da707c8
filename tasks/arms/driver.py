"""What differs between the kinds of arms whose answers come from outside coldrun."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar, cast

from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.parse import ParsedAnswer
from coldrun.tasks.arms.templates import question_values
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.config import ProcessArm
from coldrun.tasks.lib.records import Question, Reply, SessionStart

Arm = TypeVar("Arm", bound=ProcessArm)

ENDED = "the session was ended"


class StartError(Exception):
    """What answers did not start, or was not ready in time; the text says why."""


class Killable(Protocol):
    """Something that any thread may end at once."""

    def kill(self) -> None:
        """End it. Safe to call twice."""
        ...


class Driver(Generic[Arm]):
    """What answers in one session: a program, a server, or an endpoint.

    The session calls it from one thread at a time, `kill` excepted. A driver that found what
    answers dead, stuck or out of step sets `is_broken`: the session then ends it, and starts it
    again for the next question.
    """

    def __init__(self, context: SessionContext, workspace: Workspace, aborted: threading.Event):
        self.context = context
        self.arm = cast("Arm", context.arm)
        self.workspace = workspace
        self.aborted = aborted
        self.name: str | None = None
        self.is_broken = False
        self.invalid: dict[str, None] = {}
        self._held: list[Killable] = []
        self._lock = threading.Lock()

    def start(self) -> SessionStart:
        """Start what answers, and get it ready; of the times, only `indexing_seconds` counts.

        Raises:
            StartError: It did not come up.
        """
        return SessionStart()

    def values_of(self, question: Question) -> dict[str, str]:
        """What fills the placeholders of a command line, a body or a prompt for one question."""
        return {
            **self.workspace.values,
            **question_values(question.query),
            "id": question.id,
            "k": str(question.k),
            "seed": str(question.seed),
        }

    def check(self) -> None:
        """Set `is_broken` where what answers cannot be asked the next question."""

    def ask(self, question: Question, earlier: Sequence[Reply]) -> Reply:
        """Ask once. `earlier` are the replies of the tries before at the same question.

        Returns:
            What came back, as `answered`, or `infra` with the reason. Its attempts hold what each
            model was used for; its seconds are 0 where the time of the call is that of the answer.
        """
        raise NotImplementedError

    def find_fault(self, reply: Reply, parsed: ParsedAnswer) -> str | None:  # noqa: ARG002
        """Why something that came back is not an answer, beyond the tool's own words of failure."""
        return None

    def find_signal(self, reply: Reply, parsed: ParsedAnswer) -> str | None:  # noqa: ARG002
        """Why the deployed system would ask once more."""
        return None

    def end(self, *, grace_seconds: float = 0.0) -> None:
        """End what answers; with a grace, let it leave by itself first. Safe to call twice."""

    def warnings(self) -> list[str]:
        """What the report should say about the session, once it is over."""
        return []

    def hold(self, running: Killable) -> None:
        """Let `kill` end this as well, at once in a session that was aborted."""
        with self._lock:
            self._held.append(running)
            if self.aborted.is_set():
                running.kill()

    def let_go(self, running: Killable) -> None:
        """Undo `hold`."""
        with self._lock:
            self._held.remove(running)

    def kill(self) -> None:
        """End everything at once, from any thread."""
        with self._lock:
            for running in self._held:
                running.kill()
