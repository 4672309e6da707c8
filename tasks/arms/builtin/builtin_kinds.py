"""`kind = "grep"`, `"bm25"` and `"history"`: the searches that come with coldrun."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coldrun.tasks.arms.answer_text import read_protocol_line
from coldrun.tasks.arms.arm_kind import ArmKind, Unwrapped
from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.config import ArmConfig


class GrepArm(ArmConfig):
    """The words of the query against file contents."""

    kind: Literal["grep"]


class Bm25Arm(ArmConfig):
    """BM25 over identifier-aware tokens of contents and, with `path_weight`, of paths."""

    kind: Literal["bm25"]
    k1: float = Field(default=1.5, gt=0)
    b: float = Field(default=0.75, ge=0, le=1)
    path_weight: float = Field(default=3.0, ge=0)


class HistoryArm(ArmConfig):
    """Earlier commits with messages like the query vote for the files that they changed."""

    kind: Literal["history"]
    k1: float = Field(default=1.5, gt=0)
    b: float = Field(default=0.75, ge=0, le=1)

    @property
    def reads_history(self) -> bool:
        """The log up to the base commit decides its answers, not the tree alone."""
        return True


def _unwrap(raw: str, _: ArmConfig) -> Unwrapped:
    return Unwrapped(documents=[read_protocol_line(raw)], texts=[raw], form="protocol")


def _open_session(context: SessionContext) -> Session:
    from coldrun.tasks.arms.builtin.builtin_session import open_builtin_session

    return open_builtin_session(context)


GREP = ArmKind(settings=GrepArm, unwrap=_unwrap, open_session=_open_session)
HISTORY = ArmKind(settings=HistoryArm, unwrap=_unwrap, open_session=_open_session)
BM25 = ArmKind(settings=Bm25Arm, unwrap=_unwrap, open_session=_open_session)
