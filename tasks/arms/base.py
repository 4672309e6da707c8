"""What an arm is to the runner: something that opens sessions, which answer questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from coldrun.tasks.config import ArmConfig
from coldrun.tasks.lib.machine.limits import Limits
from coldrun.tasks.lib.records import AnswerKind, Point, Question, Reply, SessionEnd, SessionStart

if TYPE_CHECKING:
    from coldrun.tasks.arms.artifacts import View


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusTree:
    """One searched tree: a commit and its tree in the repository whose git directory is given."""

    git_dir: Path
    commit: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The trees that a session may search, by name; "." names the only tree of a one-repository
    panel, whose items are paths in that tree. With several, items are names of trees.

    Empty when the panel has no corpus (imported tasks, answered from the query).
    With `is_per_task` every question names a base of its own; the tree is that of the oldest.
    """

    trees: Mapping[str, CorpusTree]
    is_per_task: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """All that decides how a session is opened. `config_dir` resolves the arm's relative paths.

    `view` is what it can reach; left out, what the arm declares, in the sandbox where one can be
    made. With `is_knocked_out` the product's checkout is an empty folder.

    A start may take minutes. `on_starting`, if given, is called before it with a function that ends
    it from any thread; the session then opens all the same, and its answers are `infra`.
    """

    arm: ArmConfig
    corpus: Corpus
    answer: AnswerKind
    k: int
    seed: int
    trial: int
    point: Point | None
    config_dir: Path
    scratch: Path
    run_id: str
    on_starting: Callable[[Callable[[], None]], None] | None = None
    view: View | None = None
    limits: Limits = field(default_factory=Limits)
    is_knocked_out: bool = False


class Session(Protocol):
    """One running instance of an arm at a point and trial; one question in flight at a time."""

    @property
    def start(self) -> SessionStart:
        """How the session came up; known once it is open."""
        ...

    def ask(self, question: Question) -> Reply:
        """Answer one question. The tool's own failures are `infra` replies, never exceptions.

        Raises:
            InvalidRunError: The session proved to be another product than the point.
        """
        ...

    def close(self) -> SessionEnd:
        """End the session and tell what it left behind. Safe to call twice."""
        ...

    def abort(self) -> None:
        """End it now, from any thread: whole process group, no questions asked."""
        ...
