"""What an arm's sessions can reach, and the digests of all of it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coldrun.tasks.config import ProcessArm
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.machine.files import digest_path, session_search_path
from coldrun.tasks.lib.machine.programs import (
    Program,
    environment_mounts,
    find_program,
    plain_interpreter,
)
from coldrun.tasks.lib.machine.sandbox import (
    SEARCH_PATH,
    Mount,
    SandboxChoice,
    system_identity,
    unsandboxed_reason,
)
from coldrun.tasks.lib.machine.tree_digest import digest_tree
from coldrun.tasks.lib.own_code import interpreter
from coldrun.tasks.lib.records import Point
from coldrun.tasks.product.evaluation_files import find_evaluation_files
from coldrun.tasks.product.packages import install_package, package_mounts
from coldrun.tasks.product.point_use import list_environments

RUNNERS = {
    "uvx": "pypi:NAME==VERSION",
    "pipx": "pypi:NAME==VERSION",
    "npx": "npm:NAME@VERSION",
    "bunx": "npm:NAME@VERSION",
}
"""Programs that fetch a package and run it, with the form of `package` that takes their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the sessions of an arm can reach besides their own folders.

    Attributes:
        is_sandboxed: Whether they run in the sandbox; without it they can reach all that the user
            can.
        unsealed: Why their answers cannot be replayed; None for sealed sessions.
        programs: The arm's own program and its `binaries`, by the names they are called by.
        mounts: What is mounted besides the system, read-only.
        hidden: Files of the product's checkout that hold gold, which sessions do not see.
    """

    is_sandboxed: bool = False
    unsealed: str | None = None
    programs: Mapping[str, str]
    mounts: tuple[Mount, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def python(self) -> str:
        """What `{python}` means: in the sandbox the interpreter without coldrun's packages."""
        return plain_interpreter().place if self.is_sandboxed else sys.executable

    @property
    def search_path(self) -> str:
        """The PATH of the sessions, but for a folder with the declared programs."""
        return SEARCH_PATH if self.is_sandboxed else session_search_path()


def view_arm(
    arm: ProcessArm,
    *,
    config_dir: Path,
    point: Point | None,
    choice: SandboxChoice,
    scratch: Path | None = None,
) -> View:
    """What the sessions of an arm can reach.

    Raises:
        ConfigError: A declared file or program does not exist, or a sandbox was asked for that
            cannot be made.
    """
    problem = _unsandboxed(arm, choice)
    package = None
    if arm.package is not None:
        if problem is not None or scratch is None:
            raise ConfigError(
                f"arm {arm.name!r}: package = {arm.package!r} runs in the sandbox alone: {problem}"
            )
        package = install_package(arm.package, arm=arm.name, scratch=scratch)
    elif problem is None:
        _refuse_runner(arm)
    found = find_programs(arm, point)
    programs = {name: place for each in found.values() for name, place in each.names.items()}
    programs |= {name: program.place for name, program in found.items()}
    if problem is not None:
        return View(unsealed=problem, programs=programs)
    groups = [program.mounts for program in found.values()]
    if package is not None:
        programs = {**package.programs, **programs}
        groups.append(package_mounts(package))
    if arm.is_served or any("{python}" in word for word in arm.argv):
        groups.append(plain_interpreter().mounts)
    hidden: tuple[str, ...] = ()
    if point is not None:
        groups += [environment_mounts(folder) for folder in list_environments(point)]
        hidden = find_evaluation_files(point, config_dir=config_dir)
    named = [*absolute_files(arm), *(name for name in arm.files if name.startswith("/"))]
    groups.append(tuple(Mount(path=os.path.normpath(name)) for name in named))
    unsealed = None
    if arm.network:
        unsealed = "it uses the network (network = true)"
    elif arm.devices:
        unsealed = f"it uses {', '.join(arm.devices)} of this machine"
    elif system_identity() is None:
        unsealed = "no package database says what this system is"
    return View(
        is_sandboxed=True,
        unsealed=unsealed,
        programs=programs,
        mounts=_join_mounts(groups),
        hidden=hidden,
    )


def _refuse_runner(arm: ProcessArm) -> None:
    """Refuse a program that runs what its registry has today: sessions have no network."""
    runner = Path(arm.argv[0]).name
    if runner in RUNNERS and not arm.network:
        raise ConfigError(
            f"arm {arm.name!r}: {runner} runs what its registry has today, and sessions have no "
            f'network; say package = "{RUNNERS[runner]}" and begin argv with its program, or '
            "network = true, whose answers are never replayed"
        )


def _unsandboxed(arm: ProcessArm, choice: SandboxChoice) -> str | None:
    """Why an arm's sessions run without the sandbox; None when they run in it."""
    if not arm.runs_program:
        return "it answers from an endpoint"
    return unsandboxed_reason(choice) if arm.sandbox else "sandbox = false"


def _join_mounts(groups: Iterable[Sequence[Mount]]) -> tuple[Mount, ...]:
    """All mounts once; what one program needs whole is hidden from none."""
    whole = {
        mount.path
        for group in groups
        for mount in group
        if mount.kind == "read" and not any(_lies_in(each, mount) for each in group)
    }
    return tuple(
        dict.fromkeys(
            mount
            for group in groups
            for mount in group
            if mount.kind != "empty" or not any(mount.path.startswith(f"{top}/") for top in whole)
        )
    )


def _lies_in(mount: Mount, other: Mount) -> bool:
    return mount.kind == "empty" and mount.path.startswith(f"{other.path}/")


def describe_view(view: View, *, scratch: Path | None) -> dict[str, object] | None:
    """For the key: all that is mounted, by content; None without the sandbox."""
    if not view.is_sandboxed:
        return None
    kept_in = None if scratch is None else scratch / "digests"
    hidden = [mount.path for mount in view.mounts if mount.kind == "empty"]
    return {
        "system": system_identity(),
        "mounts": {
            mount.path: f"link {mount.source}"
            if mount.kind == "link"
            else digest_tree(Path(mount.source or mount.path), kept_in=kept_in, without=hidden)
            for mount in view.mounts
            if mount.kind != "empty"
        },
        "hidden": [*hidden, *view.hidden],
    }


def declared_files(arm: ProcessArm, *, config_dir: Path, has_product: bool) -> tuple[str, ...]:
    """The arm's files beside the configuration: adapter, `files`, and without a product or `cwd`
    also every relative word of the command line that names a file or folder there.

    They alone are copied into sessions, so a file that is not declared cannot decide an answer.
    Absolute names in `files` are shown in their own places.

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
    names = [name for name in names if not name.startswith("/")]
    if not has_product and arm.cwd is None:
        names += [
            word
            for word in arm.argv
            if word and not Path(word).is_absolute() and _is_below(config_dir, word)
        ]
    return tuple(dict.fromkeys(names))


def absolute_files(arm: ProcessArm) -> tuple[str, ...]:
    """The files that the command line names by their absolute paths, the program's own left out."""
    return tuple(
        dict.fromkeys(
            word
            for word in arm.argv[1:]
            if word.startswith("/") and os.path.isfile(word)  # noqa: PTH113 - takes any text
        )
    )


def _is_below(folder: Path, name: str) -> bool:
    """Whether `name` is something in `folder`, and not `folder` itself or something above it."""
    try:
        found = os.path.normpath(folder / name)
        return found.startswith(os.path.normpath(folder) + os.sep) and Path(found).exists()
    except (OSError, ValueError):
        return False


def find_programs(arm: ProcessArm, point: Point | None) -> dict[str, Program]:
    """Declared programs, and the arm's own where it is not part of the product, by name.

    Raises:
        ConfigError: A declared program is not on the PATH.
    """
    path = session_search_path()
    found: dict[str, Program] = {}
    for name in arm.binaries:
        program = find_program(name, path=path)
        if program is None:
            raise ConfigError(
                f"arm {arm.name!r}: the program {name!r} of `binaries` is not on the PATH; install "
                "it, or name it by its path"
            )
        found[name] = program
    first = arm.argv[0] if arm.argv and arm.package is None else "{"
    if first not in found and "{" not in first:
        is_relative = "/" in first and not Path(first).is_absolute()
        place = None if is_relative else shutil.which(first, path=path)
        is_product = (
            place is not None
            and point is not None
            and Path(place).resolve().is_relative_to(point.directory.resolve())
        )
        program = None if place is None or is_product else find_program(first, path=path)
        if program is not None:
            found[first] = program
    return found


def describe_program(program: Program) -> str:
    """For the key: where a program lies, and the digest of its file."""
    resolved = Path(program.place).resolve()
    return f"{resolved} sha256:{digest_path(resolved)}"


def describe_interpreter() -> str:
    """The interpreter behind `{python}`: implementation, version, build and place."""
    place = os.path.realpath(sys.executable)
    return f"{interpreter()} {sys.platform} {platform.machine()} {place}"
