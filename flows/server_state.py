"""What is on disk of servers: folders, locks and the one left running.

In the user's state folder, whatever `--scratch` says (COLDRUN_STATE names another one):

server.json, server.lock  the server that stays
background/               its database, log and user interface
template-<version>.db     a migrated, empty database, copied for every new server

In `prefect/` of the scratch folder, which is Prefect's home in coldrun's own process:

own/<pid>-…/              the database of an own server, gone with it
logs/<pid>-….log          what own servers said; kept a week where one did not end well
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import platformdirs
import psutil

from coldrun.flows.server_launch import PROGRAM, Launched, kill_group
from coldrun.tasks.lib.errors import StorageError

STOP_SECONDS: Final = 10.0
LOG_DAYS: Final = 7


@dataclass(frozen=True)
class RunFolders:
    """Where own servers are, below `prefect/` in the scratch folder."""

    root: Path

    @property
    def own(self) -> Path:
        """What belongs to one run: the database of its own server, and what Prefect stores."""
        return self.root / "own"

    @property
    def logs(self) -> Path:
        """The logs of own servers."""
        return self.root / "logs"


@dataclass(frozen=True)
class StateFolder:
    """Where the server that stays is, one a user."""

    root: Path

    @property
    def background(self) -> Path:
        """All that belongs to the server that stays."""
        return self.root / "background"

    @property
    def background_log(self) -> Path:
        """What the server that stays says."""
        return self.background / "server.log"

    @property
    def state(self) -> Path:
        """Which server stays."""
        return self.root / "server.json"

    @property
    def template(self) -> Path:
        """The migrated, empty database of this version of Prefect."""
        return self.root / f"template-{version('prefect')}.db"


@dataclass(frozen=True)
class Running:
    """The server that was left running.

    Attributes:
        pid: Its process, leader of its own session.
        port: The loopback port.
        created: When the process began, in seconds since the epoch, so that a new process which
            was given the same number is not taken for it.
        prefect_version: The Prefect that it runs.
    """

    pid: int
    port: int
    created: float
    prefect_version: str

    @property
    def ui_url(self) -> str:
        """The address for a browser."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        """The address for Prefect's client."""
        return f"{self.ui_url}/api"

    def is_alive(self) -> bool:
        """Whether the very process that was started still runs."""
        try:
            process = psutil.Process(self.pid)
            return (
                process.status() != psutil.STATUS_ZOMBIE
                # clocks are set, so that its start may seem some seconds off
                and abs(process.create_time() - self.created) < 60
                and any(Path(part).name == PROGRAM.name for part in process.cmdline())
            )
        except psutil.Error:
            return False

    def end(self) -> None:
        """End the process and its group: asked first, killed after ten seconds."""
        kill_group(self.pid, signal.SIGTERM)
        try:
            psutil.Process(self.pid).wait(STOP_SECONDS)
        except psutil.NoSuchProcess:
            return
        except psutil.TimeoutExpired:
            kill_group(self.pid)


def run_folders(scratch: Path) -> RunFolders:
    """The folders of own servers, whether or not they exist."""
    return RunFolders(scratch.absolute() / "prefect")


def state_folder() -> StateFolder:
    """The user's state folder, whether or not it exists."""
    if named := os.environ.get("COLDRUN_STATE"):
        return StateFolder(Path(named).expanduser().absolute())
    return StateFolder(Path(platformdirs.user_state_dir("coldrun")))


def prepare_state() -> StateFolder:
    """Make the state folder, readable by the user alone.

    Raises:
        StorageError: It cannot be written.
    """
    folder = state_folder()
    try:
        folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.root.chmod(0o700)
        folder.background.mkdir(mode=0o700, exist_ok=True)
        (folder.root / "server.lock").touch()
    except OSError as error:
        raise StorageError(
            f"the state folder {folder.root} cannot be written ({error.strerror}); name another "
            "one with COLDRUN_STATE"
        ) from None
    return folder


def prepare(scratch: Path) -> RunFolders:
    """Make the folders of own servers, and take away what killed processes left in them.

    Raises:
        StorageError: The scratch folder cannot be written.
    """
    folders = run_folders(scratch)
    try:
        for folder in (folders.own, folders.logs):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the scratch folder {scratch} cannot be written ({error.strerror}); name another one "
            "with --scratch"
        ) from None
    for home in folders.own.iterdir():
        if _is_orphan(home):
            shutil.rmtree(home, ignore_errors=True)
    for log in folders.logs.iterdir():
        with contextlib.suppress(OSError):
            if _is_orphan(log) and time.time() - log.stat().st_mtime > LOG_DAYS * 86400:
                log.unlink()
    return folders


@contextlib.contextmanager
def locked(folder: StateFolder) -> Iterator[None]:
    """Let one process at a time start or stop the server that stays."""
    with (folder.root / "server.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read_running(folder: StateFolder) -> Running | None:
    """The server that stays, as far as its process lives; a stale state file is removed."""
    try:
        running = Running(**json.loads(folder.state.read_bytes()))
        is_alive = running.is_alive()
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        is_alive = False
    if is_alive:
        return running
    with contextlib.suppress(OSError):
        folder.state.unlink(missing_ok=True)
    return None


def write_running(folder: StateFolder, server: Launched) -> None:
    """Record the server that stays, at once or not at all."""
    running = Running(
        pid=server.process.pid,
        port=server.port,
        created=psutil.Process(server.process.pid).create_time(),
        prefect_version=version("prefect"),
    )
    partial = folder.state.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(running)) + "\n", encoding="utf-8")
    partial.replace(folder.state)


def _is_orphan(path: Path) -> bool:
    """Whether the process that a name begins with is gone."""
    owner = path.name.partition("-")[0]
    return owner.isdecimal() and not psutil.pid_exists(int(owner))


def list_orphans(folders: RunFolders) -> tuple[Path, ...]:
    """The folders of own servers whose process is gone; `prepare` removes them."""
    if not folders.own.is_dir():
        return ()
    return tuple(home for home in sorted(folders.own.iterdir()) if _is_orphan(home))
