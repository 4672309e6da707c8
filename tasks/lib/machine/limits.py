"""Limits of a session: by a control group where one can be made, else by what `ulimit` binds."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

CONTROLLERS = {"memory": "memory_mb", "pids": "processes"}
"""The controllers of control groups, and the limits that they hold."""

ROOT = Path("/sys/fs/cgroup")
MIB = 1 << 20
REMOVE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one session may use; `disk_mb` is the size of its largest file. None: the default."""

    memory_mb: int | None = None
    processes: int | None = None
    open_files: int | None = None
    disk_mb: int | None = None

    def values(self) -> dict[str, int]:
        """All limits, with three quarters of the machine's memory where nothing is said."""
        memory = psutil.virtual_memory().total * 3 // 4 // MIB
        return {
            "memory_mb": self.memory_mb or memory,
            "processes": self.processes or 2048,
            "open_files": self.open_files or 4096,
            "disk_mb": self.disk_mb or 4096,
        }


@dataclass(slots=True)
class LimitedGroup:
    """The limits of one session, in force for all that is started with `wrap`."""

    limits: Limits
    folders: dict[str, Path] = field(default_factory=dict)
    _broken: dict[str, int] = field(default_factory=dict)

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` under the limits."""
        values = self.limits.values()
        words = [
            f"echo $$ > {shlex.quote(f'{path}/cgroup.procs')}" for path in self.folders.values()
        ]
        words += ["ulimit -c 0", f"ulimit -n {values['open_files']}"]
        words.append(f"ulimit -f {values['disk_mb'] * 2048}")
        if "memory" not in self.folders:
            words.append(f"ulimit -d {values['memory_mb'] * 1024}")
        return ["/bin/sh", "-c", f'{"; ".join(words)}; exec "$@"', "sh", *argv]

    def broken(self) -> list[str]:
        """The limits that were broken since this was last asked."""
        found = []
        for name, path in self.folders.items():
            count = _count_breaches(name, path)
            if count > self._broken.get(name, 0):
                self._broken[name] = count
                limit = CONTROLLERS[name]
                found.append(f"{limit} = {self.limits.values()[limit]}")
        return found

    def remove(self) -> None:
        """Remove the control group, whose processes have ended or are ending."""
        deadline = time.monotonic() + REMOVE_SECONDS
        for path in self.folders.values():
            while path.exists() and time.monotonic() < deadline:
                try:
                    path.rmdir()
                except OSError:
                    time.sleep(0.01)


def make_group(limits: Limits) -> LimitedGroup:
    """The limits of a new session."""
    group = LimitedGroup(limits)
    values, name = limits.values(), f"coldrun-{secrets.token_hex(6)}"
    for controller, base in _bases().items():
        path, value = base / name, values[CONTROLLERS[controller]]
        with contextlib.suppress(OSError):
            path.mkdir(exist_ok=True)
            if controller == "pids":
                (path / "pids.max").write_text(str(value))
            else:
                known = [path / "memory.max", path / "memory.limit_in_bytes"]
                next(each for each in known if each.exists()).write_text(str(value * MIB))
            group.folders[controller] = path
    return group


def unlimited() -> list[str]:
    """The limits that nothing on this machine can hold."""
    missing = {limit for name, limit in CONTROLLERS.items() if name not in _bases()}
    return sorted(missing - {"memory_mb"})  # `ulimit` holds memory as well


@functools.cache
def _bases() -> dict[str, Path]:
    """By controller, the folder in which this process can make control groups."""
    found: dict[str, Path] = {}
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, names, own = line.split(":", 2)
        for name in names.split(",") if names else CONTROLLERS:
            if name not in CONTROLLERS:
                continue
            top = ROOT / name if names else ROOT
            for base in (Path(f"{top}{own}"), top):
                if _takes(base, name, is_unified=not names):
                    found.setdefault(name, base)
    return found


def _takes(base: Path, controller: str, *, is_unified: bool) -> bool:
    if not os.access(base, os.W_OK):
        return False
    if not is_unified:
        return (base / "cgroup.procs").exists()
    try:
        return controller in (base / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _count_breaches(controller: str, path: Path) -> int:
    files = ("pids.events",) if controller == "pids" else ("memory.events", "memory.oom_control")
    for name in files:
        with contextlib.suppress(OSError, ValueError, KeyError):
            pairs = dict(line.split() for line in (path / name).read_text().splitlines())
            return int(pairs["max" if controller == "pids" else "oom_kill"])
    return 0
