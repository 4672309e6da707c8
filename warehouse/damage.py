"""Telling of damaged files that are left out."""

from __future__ import annotations

import warnings
from pathlib import Path


class UnreadableFileWarning(UserWarning):
    """A file of the warehouse was left out because it cannot be read."""


def warn_of_damage(path: Path, words: str) -> None:
    """Warn of a file; a command tells each once, in one line."""
    warnings.warn(f"{path} is damaged: {words}", UnreadableFileWarning, stacklevel=2)
