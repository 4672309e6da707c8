"""Checks of this machine and installation, each with the next step where something is wrong."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from coldrun.tasks.lib.git.git_command import find_user
from coldrun.tasks.lib.machine.files import find_enclosing_repository
from coldrun.tasks.lib.machine.limits import unlimited
from coldrun.tasks.lib.machine.sandbox import sandbox_problem
from coldrun.tasks.run.scratch_usage import find_prunable
from coldrun.warehouse.reader import NEXT_STEP, find_damage
from coldrun.warehouse.schemas import TABLES

Status = Literal["ok", "warning", "failed"]

OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 31)
"""`git log --diff-merges`, which mining reads merges with."""

LITTLE_ROOM_BYTES = 2 * 1000**3
NO_ROOM_BYTES = 100 * 1000**2
SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: what was found, and what to do about it unless it is fine."""

    name: str
    status: Status
    found: str
    next_step: str | None = None

    def to_values(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def _ok(name: str, found: str) -> Check:
    return Check(name=name, status="ok", found=found)


def _bad(name: str, found: str, next_step: str, status: Status = "warning") -> Check:
    return Check(name=name, status=status, found=found, next_step=next_step)


def check_machine(*, warehouse: Path, scratch: Path, root: Path) -> Iterator[Check]:
    """All checks that need no server: programs, folders, room, leftovers.

    Args:
        root: The folder that coldrun's own code is in; its uv.lock is compared where it has one.
    """
    yield check_python()
    yield check_git()
    yield check_user()
    yield check_uv(root)
    for name, folder in (("warehouse", warehouse), ("scratch", scratch)):
        yield check_folder(name, folder)
        yield check_room(name, folder)
    yield check_isolation(scratch)
    yield check_sandbox()
    yield from check_leftovers(warehouse, scratch)
    yield from check_files(warehouse)


def check_python() -> Check:
    """The interpreter's version."""
    version = sys.version_info
    found = f"{version.major}.{version.minor}.{version.micro} at {sys.executable}"
    if version[:2] >= OLDEST_PYTHON:
        return _ok("python", found)
    return _bad(
        "python", found, "install Python 3.11 or later (`uv python install 3.12`)", "failed"
    )


def check_git() -> Check:
    """That git is there and new enough."""
    text = _output(["git", "--version"])
    numbers = re.search(r"(\d+)\.(\d+)", text or "")
    if text is None or numbers is None:
        return _bad("git", "not found", "install git and try again", "failed")
    if (int(numbers[1]), int(numbers[2])) < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        return _bad("git", text, f"install git {oldest} or later", "failed")
    return _ok("git", text)


def check_user() -> Check:
    """Who a holdout ledger would name."""
    found = find_user(Path.cwd())
    if found != "unknown":
        return _ok("user", found)
    return _bad(
        "user", found, "`git config --global user.name NAME`, so that openings say who made them"
    )


def check_uv(root: Path) -> Check:
    """That uv is there, and that the lock of a clone fits its pyproject.toml."""
    text = _output(["uv", "--version"])
    if text is None:
        return _bad(
            "uv", "not found", "`pip install uv`; products and this clone are set up with it"
        )
    if not (root / "uv.lock").is_file():
        return _ok("uv", f"{text}; installed without a lock")
    check = _run(["uv", "lock", "--check", "--offline", "--project", str(root)])
    if check is not None and check.returncode != 0 and "needs to be updated" in check.stderr:
        return _bad(
            "uv",
            f"{text}; uv.lock does not fit pyproject.toml",
            f"`uv lock --project {root}`, then `uv sync`",
        )
    fits = check is not None and check.returncode == 0
    state = "uv.lock fits" if fits else "uv.lock could not be checked offline"
    return _ok("uv", f"{text}; {state}")


def check_folder(name: str, folder: Path) -> Check:
    """That a folder, or the nearest one above that exists, can be written."""
    place = _nearest(folder)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        option = f"--{name} or COLDRUN_{name.upper()}"
        return _bad(
            f"{name} folder",
            f"{folder}: {error.strerror}",
            f"name a writable folder with {option}",
            "failed",
        )
    found = str(folder) if folder.exists() else f"{folder} (made when needed)"
    return _ok(f"{name} folder", found)


def check_room(name: str, folder: Path) -> Check:
    """How much room is left where a folder is."""
    free = shutil.disk_usage(_nearest(folder)).free
    found = f"{free / 1000**3:.1f} GB free"
    if free >= LITTLE_ROOM_BYTES:
        return _ok(f"{name} room", found)
    step = "`coldrun prune` frees what can be made again"
    status: Status = "failed" if free < NO_ROOM_BYTES else "warning"
    return Check(name=f"{name} room", status=status, found=found, next_step=step)


def check_isolation(scratch: Path) -> Check:
    """That no repository is around the scratch folder: a corpus in it would show its history."""
    repository = find_enclosing_repository(scratch)
    if repository is None:
        return _ok("isolation", "no repository around the scratch folder")
    return _bad(
        "isolation",
        f"the scratch folder lies inside the repository {repository}",
        "name one outside with --scratch or COLDRUN_SCRATCH",
        "failed",
    )


def check_sandbox() -> Check:
    """That sessions can be sealed."""
    problem = sandbox_problem()
    if problem is None:
        loose = unlimited()
        rest = f"; not limited: {', '.join(loose)} (no control group can be made)" if loose else ""
        return _ok("sandbox", f"bubblewrap runs; sessions are sealed{rest}")
    return _bad(
        "sandbox",
        f"sessions are not sealed, and their answers never replayed: {problem}",
        "on Linux allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`, or an "
        "AppArmor profile for bwrap; in a container, allow them for it)",
    )


def check_leftovers(warehouse: Path, scratch: Path) -> Iterator[Check]:
    """What dead programs left: sessions, openings, unfinished runs."""
    left = [
        entry
        for entry in (find_prunable(scratch, unused_for_days=1e9) if scratch.is_dir() else [])
        if entry.kind in ("sessions", "holdout")
    ]
    if left:
        yield _bad(
            "sessions",
            f"{len(left)} folders of sessions whose program is gone",
            "`coldrun prune` ends and removes them",
        )
    else:
        yield _ok("sessions", "no orphans")
    unfinished = sorted(path.parent.name for path in (warehouse / "captures").glob("*/run.json"))
    if unfinished:
        yield _bad(
            "runs",
            f"{len(unfinished)} unfinished: {', '.join(unfinished[-3:])}",
            "`coldrun run CONFIG --resume RUN` continues one with its own answers",
        )
    else:
        yield _ok("runs", "none is unfinished")


def check_files(warehouse: Path) -> Iterator[Check]:
    """That every file of the warehouse can be read, row by row."""
    damage = [
        f"{path} {problem}"
        for table in TABLES
        for path, problem in find_damage(warehouse, table, is_thorough=True)
    ]
    for found in damage:
        yield _bad("warehouse files", f"{found}; it is in no report", NEXT_STEP)
    if not damage:
        number = sum(len(list((warehouse / table).glob("*.parquet"))) for table in TABLES)
        yield _ok("warehouse files", f"all {number} are readable")


def _nearest(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.is_dir())


def _output(command: list[str]) -> str | None:
    done = _run(command)
    return done.stdout.strip() if done is not None and done.returncode == 0 else None


def _run(command: list[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
