"""The files, programs and variables that decide what an arm answers, by digest."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from coldrun.tasks.config import ProcessArm
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.machine.file_digest import digest_path
from coldrun.tasks.lib.machine.search_path import session_search_path
from coldrun.tasks.lib.records import Point


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

    They are run from where they lie, so only their digest shows a change.
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
