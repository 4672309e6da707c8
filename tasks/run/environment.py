"""The fingerprint of the machine and the tools that a run was made with."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.machine.files import session_search_path
from coldrun.tasks.lib.own_code import installed_packages

TOOLS = ("git", "uv", "rg", "node")
VERSION_SECONDS = 10
CPU_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def environment_fingerprint() -> dict[str, Any]:
    """The operating system, processor, interpreter, packages and tools, and a `digest` of them.

    Two runs with equal digests were made in environments that look the same. The host's name and
    what changes by itself (free memory, load) are left out.
    """
    facts: dict[str, Any] = {
        "os": _operating_system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _processor(),
        "cpus": _usable_cpus(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_build": " ".join(platform.python_build()),
        "packages_digest": _packages_digest(),
        "tools": {name: _tool_version(name) for name in TOOLS},
        "threads": {name: os.environ[name] for name in CPU_VARIABLES if name in os.environ},
    }
    return {"digest": digest_environment(facts), **facts}


def digest_environment(facts: Mapping[str, Any]) -> str:
    """SHA-256 of the facts of a fingerprint, its own digest left out."""
    kept = {name: value for name, value in facts.items() if name != "digest"}
    return "sha256:" + hashlib.sha256(canonical_json(kept)).hexdigest()


def _operating_system() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.platform(aliased=True, terse=True)
    return release.get("PRETTY_NAME", release.get("NAME", sys.platform))


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _usable_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@functools.cache
def _packages_digest() -> str:
    """SHA-256 over the names and versions of the packages that coldrun runs with.

    The lock as it was resolved on this machine, also where no lock file was installed.
    """
    names = [f"{name}=={version}" for name, version in installed_packages().items()]
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


def _tool_version(name: str) -> str | None:
    """The first line of `name --version`; None when it is not installed or does not say."""
    program = shutil.which(name, path=session_search_path())
    if program is None:
        return None
    state = Path(program).stat()
    return _ask_version(program, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=64)
def _ask_version(program: str, mtime_ns: int, size: int) -> str | None:
    """Ask a program once in the state it is in: every point of a history wants to know."""
    del mtime_ns, size
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None
