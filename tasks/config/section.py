"""What every table of the configuration is made of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _as_several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_several)]
"""A list of names; one alone may be written without its brackets."""


class Section(BaseModel):
    """A table of the file: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
