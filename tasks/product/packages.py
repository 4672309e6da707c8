"""A tool by package: installed once, at an exact version, into an environment of its own.

packages/<digest>/env          the environment, without compiled files
packages/<digest>/install.log  what the installer printed
packages/<digest>.json         the completion stamp: what was asked for and what was resolved
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.machine.file_locks import hold_lock
from coldrun.tasks.lib.machine.files import remove_folder, session_search_path
from coldrun.tasks.lib.machine.programs import plain_interpreter
from coldrun.tasks.lib.machine.sandbox import Mount
from coldrun.tasks.lib.safe_json import load_object, to_record
from coldrun.tasks.product.set_up import install_in_sandbox, tail_of

HOME = "/coldrun/package"
"""Where a package is inside the sandbox, in every install and session, since its files say so."""

PACKAGE = re.compile(r"(pypi|npm):(@?[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)(?:(==|@)(\S+))?$")
EXACT = re.compile(r"\d[\w.+!-]*")
NEWEST_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPackage:
    """A package on disk. `folder` is shown at `HOME`; `resolved` names all that was installed."""

    folder: Path
    programs: dict[str, str]
    resolved: tuple[str, ...]


def install_package(text: str, *, arm: str, scratch: Path) -> InstalledPackage:
    """Install a package, or find it as it was installed.

    Raises:
        ConfigError: The text names no exact version, there is no such package, or it cannot be
            installed.
    """
    kind, name, version = _read(text, arm)
    identity = {"package": text, "python": plain_interpreter().place, "layout": 1}
    digest = hashlib.sha256(canonical_json(identity)).hexdigest()[:40]
    place = scratch.resolve() / "packages" / digest
    stamp = place.with_suffix(".json")
    with hold_lock(place.with_suffix(".lock")):
        resolved = _read_stamp(stamp)
        if resolved is None:
            remove_folder(place)
            place.mkdir(parents=True)
            _install(kind, name, version, text, arm, place)
            resolved = _resolved(kind, place / "env")
            stamp.write_bytes(canonical_json({**identity, "resolved": resolved}))
    folder = "bin" if kind == "pypi" else "node_modules/.bin"
    programs = {
        path.name: f"{HOME}/env/{folder}/{path.name}"
        for path in sorted((place / "env" / folder).iterdir())
    }
    return InstalledPackage(folder=place / "env", programs=programs, resolved=tuple(resolved))


def _read_stamp(stamp: Path) -> list[str] | None:
    """The versions that were installed; None when nothing was, or its stamp is damaged."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return to_record(load_object(stamp.read_bytes()).get("resolved"), list[str])
    return None


def package_mounts(package: InstalledPackage) -> tuple[Mount, ...]:
    """What sessions of the package's arm are shown."""
    return (Mount(path=f"{HOME}/env", source=str(package.folder)), *plain_interpreter().mounts)


def _read(text: str, arm: str) -> tuple[str, str, str]:
    found = PACKAGE.match(text)
    if found is None:
        raise ConfigError(
            f'arm {arm!r}: package = {text!r} is neither "pypi:NAME==VERSION" nor '
            '"npm:NAME@VERSION"'
        )
    kind, name, _, version = found.groups()
    if version is None or not EXACT.fullmatch(version):
        newest = _find_newest(kind, name)
        sign = "==" if kind == "pypi" else "@"
        said = f"; the newest is {kind}:{name}{sign}{newest}" if newest else ""
        raise ConfigError(f"arm {arm!r}: package = {text!r} names no exact version{said}")
    return kind, name, version


def _find_newest(kind: str, name: str) -> str | None:
    """The newest version that the user's registry has, if it can be asked."""
    argv = ["npm", "view", name, "version"]
    if kind == "pypi":
        argv = ["uv", "pip", "compile", "--quiet", "--no-deps", "--no-header", "-"]
    try:
        done = subprocess.run(
            argv, input=name, capture_output=True, text=True, timeout=NEWEST_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()[:1] not in ("#", "")]
    return lines[0].partition("==")[2] or lines[0] if lines and done.returncode == 0 else None


def _install(kind: str, name: str, version: str, text: str, arm: str, place: Path) -> None:
    env = place / "env"
    env.mkdir()
    target = f"{HOME}/env"
    commands: list[Sequence[str]]
    if kind == "npm":
        if shutil.which("npm", path=session_search_path()) is None:
            raise ConfigError(f"arm {arm!r}: package = {text!r} needs npm, which is not installed")
        options = ("--no-audit", "--no-fund", "--no-update-notifier", "--prefix", target)
        commands = [("npm", "install", *options, f"{name}@{version}")]
    else:
        python = plain_interpreter().place
        if shutil.which("uv", path=session_search_path()) is not None:
            commands = [
                ("uv", "venv", "--quiet", "--allow-existing", "--python", python, target),
                ("uv", "pip", "install", "--python", f"{target}/bin/python", f"{name}=={version}"),
            ]
        else:
            pip = (f"{target}/bin/python", "-m", "pip", "install", "--no-compile")
            commands = [(python, "-m", "venv", target), (*pip, f"{name}=={version}")]
    log = place / "install.log"
    mounts = [Mount(path=target, kind="write", source=str(env)), *plain_interpreter().mounts[:1]]
    failure = install_in_sandbox(commands, mounts, scratch=place.parent.parent, log=log)
    for folder in sorted(env.rglob("__pycache__")):
        remove_folder(folder)
    for left in ("package-lock.json", "node_modules/.package-lock.json", ".lock"):
        (env / left).unlink(missing_ok=True)
    if failure is not None:
        newest = _find_newest(kind, name)
        said = f"; its newest version is {newest}" if newest and newest != version else ""
        raise ConfigError(
            f"arm {arm!r}: package = {text!r} cannot be installed: {failure}{said}; the output "
            f"({log}) ends: {' '.join(tail_of(log).split())[-400:]}"
        )


def _resolved(kind: str, env: Path) -> list[str]:
    """Every package in an environment with its version, sorted."""
    if kind == "pypi":
        folders = env.glob("lib/python*/site-packages/*.dist-info")
        return sorted(
            "==".join(each.name.removesuffix(".dist-info").split("-")) for each in folders
        )
    found = []
    for path in env.glob("node_modules/**/package.json"):
        try:
            values = load_object(path.read_bytes())
            found.append(f"{values['name']}@{values['version']}")
        except (ValueError, KeyError, TypeError):
            continue
    return sorted(set(found))
