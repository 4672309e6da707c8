"""The PATH that sessions and set-ups are given."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


def session_search_path() -> str:
    """The user's PATH without relative entries and without coldrun's own virtual environment.

    Under `uv run`, `python` would otherwise be coldrun's interpreter, with coldrun's packages.
    """
    own = Path(sys.prefix) / "bin" if sys.prefix != sys.base_prefix else None
    kept = [
        entry
        for entry in os.environ.get("PATH", FALLBACK_PATH).split(os.pathsep)
        if entry.startswith("/") and (own is None or Path(entry) != own)
    ]
    return os.pathsep.join(dict.fromkeys(kept)) or FALLBACK_PATH
