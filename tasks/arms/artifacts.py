"""The files, programs and variables that decide what an arm answers, by digest."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coldrun.tasks.arms.base import Point
from coldrun.tasks.canonical import canonical_json
from coldrun.tasks.config import ProcessArm, ProductConfig
from coldrun.tasks.errors import ConfigError
from coldrun.tasks.machine.search_path import session_search_path

BYTECODE_FOLDER = "__pycache__"


def declared_files(arm: ProcessArm, *, config_dir: Path, has_product: bool) -> tuple[str, ...]:
    """The arm's files beside the configuration: adapter, `files`, and without a product or `cwd`
    also every relative word of the command line that names a file or folder there.

    They alone are copied into sessions, so a file that is not declared cannot decide an answer.

    Raises:
        ConfigError: A declared file does not exist.
    """
    names = [*([] if arm.adapter is None else [arm.adapter]), *arm.files]
    for name in names:
        if not (config_dir / name).exists():
            raise ConfigError(
                f"arm {arm.name!r}: there is nothing at {config_dir / name}; paths start at the "
                "folder of the configuration"
            )
    if not has_product and arm.cwd is None:
        names += [
            word
            for word in arm.argv
            if word and not Path(word).is_absolute() and _is_below(config_dir, word)
        ]
    return tuple(dict.fromkeys(names))


def absolute_files(arm: ProcessArm) -> tuple[str, ...]:
    """The files that the command line names by their absolute paths, the program's own left out.

    They are run from where they lie, so nothing but their digest tells when they change.
    """
    return tuple(
        dict.fromkeys(word for word in arm.argv[1:] if word.startswith("/") and _is_file(word))
    )


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _is_below(folder: Path, name: str) -> bool:
    """Whether `name` is something in `folder`, and not `folder` itself or something above it."""
    try:
        found = os.path.normpath(folder / name)
        return found.startswith(os.path.normpath(folder) + os.sep) and Path(found).exists()
    except (OSError, ValueError):
        return False


def digest_setup(product: ProductConfig, *, config_dir: Path) -> str:
    """SHA-256 over all that decides a set-up besides the product's own files.

    That is its command line, the values of `setup_env`, and the content of the files beside the
    configuration that `setup_files` names.
    """
    values = {
        "setup": list(product.setup),
        "setup_env": {name: os.environ.get(name) for name in product.setup_env},
        "setup_files": {name: _digest_declared(config_dir / name) for name in product.setup_files},
    }
    return hashlib.sha256(canonical_json(values)).hexdigest()


def _digest_declared(path: Path) -> str:
    if not path.exists():
        raise ConfigError(
            f"[product] setup_files: there is nothing at {path}; it names files, relative to the "
            "configuration's folder, that decide the set-up; files of the product go into setup_key"
        )
    return digest_path(path)


def digest_path(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder's files with their names, bytecode left out.

    Links are followed, to files and to folders, as a program that opens them does; one that leads
    nowhere counts as its text. Executable bits count.

    Raises:
        ConfigError: Links to folders go round in a circle.
    """
    digest = hashlib.sha256()
    if not path.is_dir():
        _feed_file(digest, path)
        return digest.hexdigest()
    for name, file in sorted(_walk(path, "", (os.path.realpath(path),))):
        digest.update(f"{len(name.encode('utf-8', 'surrogateescape'))}:".encode("ascii"))
        digest.update(name.encode("utf-8", "surrogateescape"))
        inner = hashlib.sha256()
        _feed_file(inner, file)
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


def _feed_file(digest: Any, path: Path) -> None:
    try:
        with path.open("rb") as file:
            digest.update(b"x" if os.access(path, os.X_OK) else b"-")
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except (FileNotFoundError, IsADirectoryError):
        digest.update(b"link:" + os.fsencode(os.readlink(path)))  # noqa: PTH115


def find_binaries(arm: ProcessArm, point: Point | None) -> dict[str, str]:
    """Declared programs, and the arm's own where it is not part of the product: place and digest.

    Raises:
        ConfigError: A declared program is not on the PATH.
    """
    path = session_search_path()
    found: dict[str, str] = {}
    for name in arm.binaries:
        place = shutil.which(name, path=path)
        if place is None:
            raise ConfigError(
                f"arm {arm.name!r}: the program {name!r} of `binaries` is not on the PATH; install "
                "it, or name it by its path"
            )
        found[name] = _describe_binary(place)
    if not arm.argv:
        return found
    program = arm.argv[0]
    if program not in found and "{" not in program:
        is_relative = "/" in program and not Path(program).is_absolute()
        place = None if is_relative else shutil.which(program, path=path)
        if place is not None and not (
            point is not None and Path(place).resolve().is_relative_to(point.directory.resolve())
        ):
            found[program] = _describe_binary(place)
    return found


def _describe_binary(place: str) -> str:
    resolved = Path(place).resolve()
    return f"{resolved} sha256:{digest_path(resolved)}"


def describe_interpreter() -> str:
    """The interpreter behind `{python}`: implementation, version, build and place."""
    return " ".join(
        (
            platform.python_implementation(),
            platform.python_version(),
            "-".join(platform.python_build()),
            sys.platform,
            platform.machine(),
            os.path.realpath(sys.executable),
        )
    )
