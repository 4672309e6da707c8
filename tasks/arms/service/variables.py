"""The variables of the user's that requests to an arm's endpoint are made with."""

from __future__ import annotations

import os
from collections.abc import Iterable

from coldrun.tasks.config import ChatArm, ServerArm
from coldrun.tasks.config.arm_config import CREDENTIAL_HEADERS, HEADER_VARIABLE
from coldrun.tasks.lib.errors import ConfigError


def header_variables(arm: ServerArm) -> tuple[str, ...]:
    """The variables that the arm's headers are filled from, in order."""
    return _named_variables(arm, arm.headers.values())


def credential_variables(arm: ServerArm) -> tuple[str, ...]:
    """The variables that only say who asks: their values are part of no key."""
    headers = arm.headers.items()
    texts = [text for header, text in headers if header.lower() in CREDENTIAL_HEADERS]
    return _named_variables(arm, texts)


def _named_variables(arm: ServerArm, texts: Iterable[str]) -> tuple[str, ...]:
    """The variables in these headers, and that of a model's key."""
    named = [name for text in texts for name in HEADER_VARIABLE.findall(text)]
    if isinstance(arm, ChatArm) and arm.api_key_env is not None:
        named.append(arm.api_key_env)
    return tuple(dict.fromkeys(named))


def require_variables(arm: ServerArm) -> None:
    """Refuse an arm whose headers cannot be filled.

    Raises:
        ConfigError: A variable that a header needs is not set.
    """
    missing = [name for name in header_variables(arm) if not os.environ.get(name)]
    if missing:
        raise ConfigError(
            f"arm {arm.name!r}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not "
            f"set, and the requests need it; `export {missing[0]}=…` and try again"
        )
