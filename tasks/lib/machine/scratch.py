"""The scratch folder: outside any repository, and removed piece by piece."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from coldrun.tasks.lib.errors import UsageError


def find_enclosing_repository(folder: Path) -> Path | None:
    """The nearest folder at or above `folder` in which git would find a repository."""
    folder = folder.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
        if (candidate / "HEAD").is_file() and all(
            (candidate / name).is_dir() for name in ("objects", "refs")
        ):
            return candidate
    return None


def refuse_enclosing_repository(scratch: Path) -> None:
    """Raise UsageError when git, started in `scratch`, would find a repository around it."""
    found = find_enclosing_repository(scratch)
    if found is not None:
        raise UsageError(
            f"the scratch folder {scratch} lies inside the git repository {found}, so a corpus in "
            "it would let `git log` show later commits; choose one outside with --scratch or "
            "COLDRUN_SCRATCH"
        )


def remove_folder(folder: Path) -> None:
    """Remove a folder and all in it, read-only parts included; nothing left is fine."""

    def make_writable(_function: object, path: str, _error: object) -> None:
        found = Path(path)
        with contextlib.suppress(OSError):
            found.parent.chmod(0o700)
            if found.is_dir() and not found.is_symlink():
                found.chmod(0o700)
                shutil.rmtree(found, ignore_errors=True)
            else:
                found.unlink()

    shutil.rmtree(folder, onerror=make_writable)
