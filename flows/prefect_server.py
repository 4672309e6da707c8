"""The Prefect server that flows run on: the one of `PREFECT_API_URL`, else the user's own.

`coldrun server start` keeps one a user, whatever `--scratch` says; it lives in the user's state
folder (COLDRUN_STATE names another one). Where no server runs, commands do without: a server that
ends with its run could be looked at by nobody. Prefect itself is not imported here.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

import platformdirs
import psutil

from coldrun.flows.server_health import find_network_problem, find_problem
from coldrun.tasks.lib.errors import ColdrunError, StorageError, UsageError
from coldrun.tasks.lib.machine.child_process import kill_group
from coldrun.tasks.lib.machine.file_locks import hold_lock
from coldrun.tasks.lib.machine.files import changed_environment, write_whole
from coldrun.tasks.lib.safe_json import load_record

PORTS: Final = (4200, 0)
"""Prefect's usual port first, so that a bookmarked address stays right; then any free one."""
START_SECONDS: Final = 300.0
ANSWER_SECONDS: Final = 20.0
STOP_SECONDS: Final = 10.0
START: Final = ("prefect", "server", "start")
NEWS_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.05

_OFFLINE: Final = {
    "DO_NOT_TRACK": "1",
    # with analytics on, a fresh database answers `database is locked` now and then
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    # of Prefect's own profiles the one it falls back to; the user's is never read
    "PREFECT_PROFILE": "ephemeral",
}

# One transaction for many events in place of one for each: 256 task runs cost the server 2.4 s of
# CPU in place of 7.2 s, and the next flow no longer waits for the last one's events.
_BATCHES: Final = {
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TRIGGERS_READ_BATCH_SIZE": "100",
}

# Its loops wake a thousand times an hour for work pools, pauses and late runs: 3 % of a core.
_SELDOM: Final = {
    f"PREFECT_SERVER_SERVICES_{name}_LOOP_SECONDS": "60"
    for name in (
        "CANCELLATION_CLEANUP",
        "FOREMAN",
        "LATE_RUNS",
        "PAUSE_EXPIRATIONS",
        "REPOSSESSOR",
        "CLEANUP_RECONCILER",
    )
}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that flows can use; `kind` is `given` for that of `PREFECT_API_URL`."""

    api_url: str
    kind: Literal["given", "running"]
    auth: str | None = None

    @property
    def ui_url(self) -> str:
        """The address for a browser."""
        return self.api_url.rstrip("/").removesuffix("/api")


@dataclass(frozen=True, slots=True)
class Running:
    """The server that was left running, as `server.json` has it.

    Attributes:
        pid: Its process, leader of its own session.
        port: The loopback port.
        created: When the process began, in seconds since the epoch, so that a new process which
            was given the same number is not taken for it.
        prefect_version: The Prefect that it runs.
        auth: What clients must show, `name:password`.
    """

    pid: int
    port: int
    created: float
    prefect_version: str
    auth: str

    @property
    def api_url(self) -> str:
        """The address for Prefect's client."""
        return f"http://127.0.0.1:{self.port}/api"

    def is_alive(self) -> bool:
        """Whether the very process that was started still runs."""
        try:
            process = psutil.Process(self.pid)
            return (
                process.status() != psutil.STATUS_ZOMBIE
                # clocks are set, so that its start may seem some seconds off
                and abs(process.create_time() - self.created) < 60
                and "prefect" in process.cmdline()
            )
        except psutil.Error:
            return False

    def end(self) -> None:
        """End the process and its group: asked first, killed after ten seconds."""
        kill_group(self.pid, signal.SIGTERM)
        with contextlib.suppress(psutil.Error):
            psutil.Process(self.pid).wait(STOP_SECONDS)
        kill_group(self.pid)


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Where the server that stays is, one a user."""

    root: Path

    @property
    def state(self) -> Path:
        """Which server stays."""
        return self.root / "server.json"

    @property
    def database(self) -> Path:
        """Its database."""
        return self.root / "server" / "prefect.db"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.root / "server" / "server.log"

    def prepare(self) -> None:
        """Make it, readable by the user alone.

        Raises:
            StorageError: It cannot be written.
        """
        try:
            for folder in (self.root, self.log.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
        except OSError as error:
            raise StorageError(
                f"the state folder {self.root} cannot be written ({error.strerror}); name another "
                "one with COLDRUN_STATE"
            ) from None

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Let one process at a time start or stop the server."""
        self.prepare()
        return hold_lock(self.root / "server.lock")

    def read(self) -> Running | None:
        """The server that stays, as far as its process lives; a stale file is removed."""
        try:
            running = load_record(self.state.read_bytes(), Running)
            if running.is_alive():
                return running
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            pass
        with contextlib.suppress(OSError):
            self.state.unlink(missing_ok=True)
        return None

    def write(self, running: Running) -> None:
        """Record the server that stays, at once or not at all."""
        write_whole(self.state, json.dumps(asdict(running)).encode() + b"\n", mode=0o600)


def state_folder() -> StateFolder:
    """The user's state folder, whether or not it exists."""
    named = os.environ.get("COLDRUN_STATE")
    if named:
        return StateFolder(Path(named).expanduser().absolute())
    return StateFolder(Path(platformdirs.user_state_dir("coldrun")))


def find_server(announce: Callable[[str], None]) -> Server | None:
    """The server that flows are to use, which answers; None where none runs.

    Args:
        announce: Told in one line which server is used, or why one is not.

    Raises:
        ColdrunError: The server of `PREFECT_API_URL` does not answer.
    """
    if url := os.environ.get("PREFECT_API_URL"):
        problem = find_network_problem() or find_problem(url, timeout_seconds=ANSWER_SECONDS)
        if problem is not None:
            raise ColdrunError(
                f"the Prefect server of PREFECT_API_URL={url} cannot be used: {problem}; start it, "
                "mend the address (it ends in /api), or unset PREFECT_API_URL to run without one"
            )
        announce(f"Prefect server: {url}")
        return Server(url, "given")
    running = state_folder().read()
    if running is None:
        return None
    if running.prefect_version != version("prefect"):
        announce(
            f"not used: the running server is of Prefect {running.prefect_version}, this is "
            f"{version('prefect')}: `coldrun server start` replaces it"
        )
        return None
    problem = find_network_problem()
    try:
        if problem is None:
            _await(running, announce)
    except ColdrunError as error:
        problem = str(error)
    if problem is not None:
        announce(f"the Prefect server is not used: {problem}")
        return None
    server = Server(running.api_url, "running", running.auth)
    announce(f"Prefect server: {server.ui_url}")
    return server


def require_server(announce: Callable[[str], None]) -> Server:
    """The same, for what cannot do without.

    Raises:
        UsageError: No server runs.
    """
    server = find_server(announce)
    if server is None:
        raise UsageError(
            "no Prefect server runs; set PREFECT_API_URL, or `coldrun server start` one"
        )
    return server


@contextlib.contextmanager
def use_server(server: Server, *, verbose: bool) -> Iterator[Server]:
    """Have Prefect set up to use a server for as long as the context lasts.

    The environment of this process is changed for the context, so only one context may be open at
    a time. Prefect's lines are left out, because every error that they would report is also
    raised, and reported once by the command; `verbose` shows them.
    """
    level = "WARNING" if verbose else "CRITICAL"
    logging.getLogger("EventsWorker").setLevel(level)  # outside Prefect's own settings
    with tempfile.TemporaryDirectory(prefix="coldrun-prefect-") as home:
        variables = {
            **_OFFLINE,
            "PREFECT_HOME": home,  # where Prefect stores the exception of a flow that failed
            "PREFECT_API_URL": server.api_url,
            # a server that hangs is given up in half a minute, not in several
            "PREFECT_API_REQUEST_TIMEOUT": "5",
            "PREFECT_CLIENT_MAX_RETRIES": "3",  # a busy database answers 503
            "PREFECT_LOGGING_LEVEL": "INFO" if verbose else "CRITICAL",
            "PREFECT_LOGGING_INTERNAL_LEVEL": level,
            "PREFECT_SERVER_LOGGING_LEVEL": level,
            # a server behind our back would be neither quiet nor found again
            "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
            "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
            # captures have their own store and their own keys
            "PREFECT_TASKS_DISABLE_CACHING": "true",
        }
        if server.auth is not None:
            variables["PREFECT_API_AUTH_STRING"] = server.auth
        if server.kind != "given":
            variables |= _without_proxy()
        kept = ("PREFECT_API_", "PREFECT_CLIENT_") if server.kind == "given" else ()
        foreign: dict[str, str | None] = {
            name: None
            for name in os.environ
            if name.startswith("PREFECT") and not name.startswith(kept)
        }
        with changed_environment(foreign | variables):
            _refresh_prefect()
            yield server


def start_server(announce: Callable[[str], None]) -> Running:
    """Start a server that outlives the terminal; does nothing when one runs.

    Args:
        announce: Told what takes long.

    Raises:
        ColdrunError: It did not start.
        StorageError: The user's state folder cannot be written.
    """
    folder = state_folder()
    with folder.locked():
        running = folder.read()
        if running is not None and running.prefect_version == version("prefect"):
            _await(running, announce)
            return running
        if running is not None:
            announce(f"replacing the server of Prefect {running.prefect_version}")
            running.end()
        announce("starting a Prefect server that stays (about 10 s)")
        running, process = _launch(folder)
        try:
            folder.write(running)
            _await(running, announce, process=process, log=folder.log)
        except BaseException:
            kill_group(running.pid)
            process.wait()
            folder.state.unlink(missing_ok=True)
            raise
        return running


def stop_server() -> Running | None:
    """End the server that `start_server` left running, with all its processes.

    Returns:
        The server that was stopped, None when none ran.
    """
    folder = state_folder()
    with folder.locked():
        running = folder.read()
        if running is not None:
            running.end()
            folder.state.unlink(missing_ok=True)
    return running


def _launch(folder: StateFolder) -> tuple[Running, subprocess.Popen[bytes]]:
    port = _free_port()
    auth = f"coldrun:{secrets.token_urlsafe(24)}"
    with os.fdopen(os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        os.fchmod(log.fileno(), 0o600)  # one that an earlier version made
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *START, "--host", "127.0.0.1", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder.log.parent,  # Prefect reads .env and prefect.toml where it stands
            env=server_environment(dict(os.environ), folder.log.parent, port=port, auth=auth),
            start_new_session=True,
            umask=0o077,
        )
    created = psutil.Process(process.pid).create_time()
    return Running(process.pid, port, created, version("prefect"), auth), process


def server_environment(
    inherited: dict[str, str], home: Path, *, port: int, auth: str
) -> dict[str, str]:
    """The environment of the server process.

    What begins with `PREFECT` is dropped from what it inherits, so that a setting meant for another
    server cannot reach this one. Only who has `auth` is answered, and no page of another origin.
    """
    kept = {name: value for name, value in inherited.items() if not name.startswith("PREFECT")}
    url = f"http://127.0.0.1:{port}"
    ours = {
        "PREFECT_HOME": str(home),
        "PREFECT_PROFILES_PATH": str(home / "profiles.toml"),
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_COLORS": "false",
        "PREFECT_API_URL": f"{url}/api",
        "PREFECT_SERVER_API_AUTH_STRING": auth,
        "PREFECT_API_AUTH_STRING": auth,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": url,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
        "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
        "PREFECT_SERVER_UI_API_URL": f"{url}/api",
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home / "ui"),
    }
    return {**kept, **_OFFLINE, **_BATCHES, **_SELDOM, **ours}


def _await(
    running: Running,
    announce: Callable[[str], None],
    *,
    process: subprocess.Popen[bytes] | None = None,
    log: Path | None = None,
) -> None:
    """Wait for a server whose process is there: it may just have been started."""
    began = time.monotonic()
    is_young = time.time() - running.created < START_SECONDS
    limit, next_news = START_SECONDS if is_young else ANSWER_SECONDS, NEWS_SECONDS
    while (waited := time.monotonic() - began) < limit:
        if find_problem(running.api_url, timeout_seconds=5, auth=running.auth) is None:
            return
        if process is not None and process.poll() is not None:
            code = process.returncode
            raise ColdrunError(
                f"the Prefect server ended while it started (exit code {code}){_last_words(log)}"
            )
        if process is None and not running.is_alive():
            break
        if waited >= next_news:
            announce(f"still waiting for the Prefect server ({waited:.0f} s)")
            next_news += NEWS_SECONDS
        time.sleep(POLL_SECONDS)
    raise ColdrunError(
        f"the Prefect server left running (process {running.pid}, port {running.port}) does not "
        f"answer{_last_words(log)}; `coldrun server stop` ends it"
    )


def _free_port() -> int:
    for port in PORTS:
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            found: int = listener.getsockname()[1]
            return found
    raise ColdrunError(f"no loopback port is free for a Prefect server (tried {PORTS})")


def _last_words(log: Path | None) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log else []
    except OSError:
        lines = []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
    return f"; its log is {log} and ends with: {last[:200]}" if log else ""


def _without_proxy() -> dict[str, str]:
    """Prefect's client asks a proxy even for this machine, unless it is told not to."""
    hosts = [os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "", "127.0.0.1"]
    value = ",".join(host for host in hosts if host)
    return {"no_proxy": value, "NO_PROXY": value}


def _refresh_prefect() -> None:
    """Let a Prefect that is imported already read the environment again."""
    if "prefect" not in sys.modules:
        return
    from prefect.context import refresh_global_settings_context
    from prefect.logging.configuration import setup_logging

    refresh_global_settings_context()
    setup_logging()
