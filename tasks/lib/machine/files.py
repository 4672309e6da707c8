"""Files and folders of this machine: the scratch folder, whole files, digests; the environment."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.errors import ConfigError, StorageError, UsageError


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


BYTECODE_FOLDER = "__pycache__"


def digest_path(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder's files with their names, bytecode left out.

    Links are followed, to files and to folders, as a program that opens them does; one that leads
    nowhere counts as its text. Executable bits count.
    """
    digest = hashlib.sha256()
    if not path.is_dir():
        feed_file(digest, path)
        return digest.hexdigest()
    for name, file in sorted(_walk(path, "", (os.path.realpath(path),))):
        digest.update(f"{len(name.encode('utf-8', 'surrogateescape'))}:".encode("ascii"))
        digest.update(name.encode("utf-8", "surrogateescape"))
        inner = hashlib.sha256()
        feed_file(inner, file)
        digest.update(inner.digest())
    return digest.hexdigest()


def _walk(folder: Path, prefix: str, above: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        if not entry.is_dir():
            yield prefix + entry.name, Path(entry.path)
        elif entry.name != BYTECODE_FOLDER:
            place = os.path.realpath(entry.path)
            if place in above:
                raise ConfigError(
                    f"the link {entry.path} leads round in a circle, to a folder that it lies in; "
                    "declare folders without such links"
                )
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/", (*above, place))


def feed_file(digest: Any, path: Path) -> None:
    """Feed a digest with a file: its executable bit and bytes, or where a dead link leads."""
    try:
        with path.open("rb") as file:
            digest.update(b"x" if os.access(path, os.X_OK) else b"-")
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except (FileNotFoundError, IsADirectoryError):
        digest.update(b"link:" + os.fsencode(os.readlink(path)))  # noqa: PTH115


def write_whole(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file so that a reader sees all of it or what was there before."""
    write_together({path: data}, mode=mode)


def write_together(contents: Mapping[Path, bytes], *, mode: int = 0o666) -> None:
    """Write several files in their order, and none of them unless there is room for all."""
    temporaries = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in contents}
    path = next(iter(contents))
    try:
        try:
            for path, data in contents.items():
                temporaries[path].touch(mode)
                temporaries[path].write_bytes(data)
            for path, temporary in temporaries.items():
                temporary.replace(path)
        finally:
            for temporary in temporaries.values():
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}; free some room or choose a writable folder"
        ) from None


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


@contextlib.contextmanager
def changed_environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables, or unset those that are None, and give them back their values at the end."""
    before = {name: os.environ.get(name) for name in variables}
    _set_variables(variables)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
