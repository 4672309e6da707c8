"""What a program outside the system needs to run: its file, interpreter, environment and prefix."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coldrun.tasks.lib.machine.sandbox import Mount, is_in_system

SHIM_MANAGERS = ("pyenv", "rbenv", "nodenv", "asdf", "mise")
SHIM_SECONDS = 20
MOST_LINKS = 40
PYTHON_PACKAGES = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program as it is started, and what must be mounted for it.

    `names` are programs that its scripts look for on the PATH, with their places.
    """

    place: str
    mounts: tuple[Mount, ...]
    names: Mapping[str, str] = field(default_factory=dict)


def find_program(name: str, *, path: str) -> Program | None:
    """A program by its name on `path`, or by its absolute path; None where there is none.

    The shims of version managers are asked for the program behind them.
    """
    found = shutil.which(name, path=path)
    if found is None:
        return None
    place = _behind_shim(found)
    names: dict[str, str] = {}
    mounts = tuple(dict.fromkeys(_needs(place, path, names)))
    return Program(place=place, mounts=mounts, names=names)


def plain_interpreter() -> Program:
    """The Python that coldrun runs on, with its standard library and no packages."""
    place = os.path.realpath(sys.executable)
    return Program(place=place, mounts=tuple(_interpreter(place, has_packages=False)))


def environment_mounts(folder: Path) -> tuple[Mount, ...]:
    """What a virtual environment needs besides its own folder: the interpreter that it was made
    from."""
    try:
        text = (folder / "pyvenv.cfg").read_text("utf-8", "replace")
    except OSError:
        return ()
    values = dict(re.findall(r"(?m)^\s*([\w-]+)\s*=\s*(.*?)\s*$", text))
    has_packages = values.get("include-system-site-packages", "").lower() == "true"
    home = values.get("home", "")
    if not home.startswith("/"):
        return ()
    python = next((each for each in _pythons(folder) if each.startswith("/")), f"{home}/python3")
    return tuple(dict.fromkeys(_interpreter(python, has_packages=has_packages)))


def _pythons(folder: Path) -> Iterator[str]:
    for name in ("python", "python3"):
        link = folder / "bin" / name
        if link.is_symlink():
            yield os.readlink(link)  # noqa: PTH115


def _behind_shim(place: str) -> str:
    folder, name = os.path.split(place)
    if os.path.basename(folder) != "shims":  # noqa: PTH119
        return place
    for manager in SHIM_MANAGERS:
        program = shutil.which(manager)
        if manager in folder and program is not None:
            try:
                done = subprocess.run(
                    [program, "which", name],
                    capture_output=True,
                    text=True,
                    timeout=SHIM_SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired):
                continue
            said = done.stdout.strip()
            if done.returncode == 0 and os.access(said, os.X_OK):
                return said
    return place


def _needs(place: str, path: str, names: dict[str, str], *, depth: int = 0) -> Iterator[Mount]:
    """The mounts of a program: its links, the environment or prefix it lies in, its interpreter.

    Interpreters that a script looks for on the PATH are added to `names`.
    """
    chain, links = follow_links(place)
    yield from links
    for each in chain:
        environment = Path(each).parent.parent
        if (environment / "pyvenv.cfg").is_file():
            yield Mount(path=str(environment))
            yield from environment_mounts(environment)
    last = chain[-1]
    if is_in_system(last):
        return
    prefixes = [prefix for each in chain if (prefix := _prefix(each)) is not None]
    yield from (Mount(path=prefix) for prefix in prefixes)
    if not any(last.startswith(f"{prefix}/") for prefix in prefixes):
        yield Mount(path=last)
    named, is_searched = _shebang(last)
    interpreter = shutil.which(named, path=path) if named else None
    if interpreter is not None and depth < MOST_LINKS:
        behind = _behind_shim(interpreter)
        if is_searched:
            names[named] = behind
        elif behind != interpreter:
            yield Mount(path=interpreter, kind="link", source=behind)
        yield from _needs(behind, path, names, depth=depth + 1)


def _interpreter(place: str, *, has_packages: bool) -> Iterator[Mount]:
    chain, links = follow_links(place)
    yield from links
    prefix = _prefix(chain[-1])
    if prefix is None:
        if not is_in_system(chain[-1]):
            yield Mount(path=chain[-1])
        return
    yield Mount(path=prefix)
    if not has_packages:
        for name in PYTHON_PACKAGES:
            for folder in sorted(Path(prefix, "lib").glob(f"python*/{name}")):
                yield Mount(path=str(folder), kind="empty")


def _prefix(place: str) -> str | None:
    """The folder that a program was installed to as a whole: `bin` and `lib` lie side by side.

    Never a home folder, `~/.local`, or something above one.
    """
    if is_in_system(place):
        return None
    folder = Path(place).parent
    prefix = folder.parent
    home = Path.home()
    if folder.name != "bin" or not (prefix / "lib").is_dir():
        return None
    return None if home.is_relative_to(prefix) or prefix == home / ".local" else str(prefix)


def follow_links(place: str) -> tuple[list[str], list[Mount]]:
    """The paths that a path leads through, the last one real, and the links outside the system."""
    chain, links = [place], []
    for _ in range(MOST_LINKS):
        path = chain[-1]
        parts = Path(path).parts
        for count in range(2, len(parts) + 1):
            head = os.path.join(*parts[:count])  # noqa: PTH118
            if os.path.islink(head):  # noqa: PTH114
                target = os.readlink(head)  # noqa: PTH115
                if not is_in_system(head):
                    links.append(Mount(path=head, kind="link", source=target))
                joined = os.path.join(os.path.dirname(head), target, *parts[count:])  # noqa: PTH118, PTH120
                chain.append(os.path.normpath(joined))
                break
        else:
            return chain, links
    return chain, links


def _shebang(place: str) -> tuple[str, bool]:
    """The program that a script names in its first line, and whether it is to be searched for."""
    try:
        with open(place, "rb") as file:  # noqa: PTH123
            first = file.readline(512)
    except OSError:
        return "", False
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if not words or os.path.basename(words[0]) != "env":  # noqa: PTH119
        return (words[0] if words else ""), False
    named = (word for word in words[1:] if not word.startswith("-") and "=" not in word)
    return next(named, ""), True
