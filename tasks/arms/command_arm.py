"""Arms that run a program: a JSON Lines session, or one process per task."""

from __future__ import annotations

from pathlib import Path

from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.arms.line_session import LineSession
from coldrun.tasks.arms.per_base import WorkspaceSession, begin_session, open_per_base
from coldrun.tasks.arms.per_task_session import PerTaskSession
from coldrun.tasks.arms.workspace.isolation import open_workspace
from coldrun.tasks.config import CommandArm
from coldrun.tasks.lib.errors import ConfigError


def open_command_session(context: SessionContext) -> Session:
    """Open a session of a `command` arm.

    A program that does not start is the arm's failure: the session opens, and its answers are
    `infra`.

    Raises:
        ConfigError: The arm is no `command` arm, or a declared file is missing.
        UsageError: The scratch folder lies inside a git repository.
        StorageError: The scratch folder cannot be written.
        RepositoryError: The corpus cannot be read.
    """
    return open_per_base(context, _open)


def _open(context: SessionContext, root: Path | None) -> WorkspaceSession:
    arm = context.arm
    if not isinstance(arm, CommandArm):
        raise ConfigError(f"arm {arm.name!r} is of kind {arm.kind!r}, not `command`")
    workspace = open_workspace(context, arm, root=root)
    if arm.mode == "per-task":
        return PerTaskSession(context=context, arm=arm, workspace=workspace)
    session = LineSession(context=context, arm=arm, workspace=workspace)
    return begin_session(session, context)
