"""`kind = "command"`: a program, as a JSON Lines session or as one process per task."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coldrun.tasks.arms.answer_text import json_documents, read_protocol_line
from coldrun.tasks.arms.arm_kind import ArmKind, Unwrapped
from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.config import ProcessArm


class CommandArm(ProcessArm):
    """A program: it speaks the protocol for a whole session, or is started for each task."""

    kind: Literal["command"]
    argv: tuple[str, ...] = Field(min_length=1)
    mode: Literal["session", "per-task"] = "session"


def _unwrap(raw: str, arm: CommandArm) -> Unwrapped:
    if arm.mode == "session":
        return Unwrapped(documents=[read_protocol_line(raw)], texts=[raw], form="protocol")
    return Unwrapped(documents=list(json_documents([raw])), texts=[raw], form="text")


def _open_session(context: SessionContext) -> Session:
    from coldrun.tasks.arms.command.command_driver import LineDriver, PerTaskDriver
    from coldrun.tasks.arms.driven_session import open_driven

    is_session = isinstance(context.arm, CommandArm) and context.arm.mode == "session"
    return open_driven(context, LineDriver if is_session else PerTaskDriver)


COMMAND = ArmKind(settings=CommandArm, unwrap=_unwrap, open_session=_open_session)
