"""What every table of the configuration is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the file: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
