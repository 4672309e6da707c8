"""Who is at work: the one thing that is read from the user's own git configuration."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path

SECONDS = 10


def find_user(folder: Path) -> str:
    """Name and address as git has them in `folder`, else the name of the user's account."""
    name, address = (_read(folder, key) for key in ("user.name", "user.email"))
    if name:
        return f"{name} <{address}>" if address else name
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return address or "unknown"


def _read(folder: Path, key: str) -> str:
    try:
        done = subprocess.run(
            ["git", "config", "--get", key],
            cwd=folder,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()
