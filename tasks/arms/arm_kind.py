"""What each kind of arm declares, and the sessions that the kinds of the registry open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.config import ArmConfig
from coldrun.tasks.config.arm_config import find_kind
from coldrun.tasks.lib.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwrapped:
    """An answer without what its kind wraps it in: the JSON documents and the texts in it.

    `form` says what may be read from it: one line of the JSON Lines protocol; `text`, which may
    also be one path a line; or `json` alone.
    """

    documents: Sequence[Any]
    texts: Sequence[str]
    form: Literal["protocol", "text", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmKind:
    """A kind of arm, as its module declares it and `ARM_KINDS` names it.

    Attributes:
        settings: The model of its `[[arm]]` table. It is part of the key of each answer, with what
            its properties `runs_program`, `is_identified` and `deciding_variables` say.
        unwrap: Takes an answer's raw text apart. Raises MalformedError when it has another form.
        open_session: Opens a session; imports what it needs.
    """

    settings: type[ArmConfig]
    unwrap: Callable[[str, Any], Unwrapped]
    open_session: Callable[[SessionContext], Session]


def kind_of(arm: ArmConfig) -> ArmKind:
    """The kind of an arm."""
    kind: ArmKind = find_kind(arm.kind)
    return kind


def open_session(context: SessionContext) -> Session:
    """Open one session of an arm.

    Raises:
        ConfigError: The arm's settings are of another kind, a declared file is missing, or a
            variable that a header needs is not set.
        ColdrunError: It cannot be opened at all; a tool that fails later gives `infra` replies.
    """
    kind = kind_of(context.arm)
    if not isinstance(context.arm, kind.settings):
        raise ConfigError(
            f"arm {context.arm.name!r}: its settings are not those of kind {context.arm.kind!r}"
        )
    return kind.open_session(context)
