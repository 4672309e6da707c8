"""The Prefect server that a flow runs on: the given one, a running one, or one of its own.

    with use_server(scratch, verbose=False, announce=say) as server:
        from coldrun.flows.evaluate import evaluate   # Prefect is imported here at the earliest

The order is fixed: `PREFECT_API_URL`, then the server that `coldrun server start` left running,
then an own one that ends with this process, even when the process is killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

from coldrun.flows.server_environment import prefect_environment
from coldrun.flows.server_launch import START_SECONDS, health, launch, patience, wait_until_ready
from coldrun.flows.server_state import (
    RunFolders,
    Running,
    StateFolder,
    locked,
    prepare,
    prepare_state,
    read_running,
    state_folder,
    write_running,
)
from coldrun.tasks.lib.errors import ColdrunError

__all__ = [
    "ServerHandle",
    "ServerStatus",
    "prefect_environment",
    "server_status",
    "start_server",
    "stop_server",
    "use_server",
]

BACKGROUND_PORTS: Final = (4200, 0)
"""Prefect's usual port first, so that a bookmarked address stays right."""
ANSWER_SECONDS: Final = 20.0


@dataclass(frozen=True)
class ServerHandle:
    """The server that this process uses.

    Attributes:
        api_url: Its address for Prefect's client.
        ui_url: Its user interface; None for an own server, which has none.
        kind: Whose it is: the user's, one left running, or this process's own.
    """

    api_url: str
    ui_url: str | None
    kind: Literal["given", "running", "own"]
    _wait: Callable[[], None]

    def wait_until_ready(self) -> None:
        """Return when it answers; only an own server can take a while.

        Raises:
            ColdrunError: It did not start.
        """
        self._wait()


@dataclass(frozen=True)
class ServerStatus:
    """The server that `coldrun server start` left running, or the lack of one.

    All but `is_running`, `database` and `log` are None where none runs.
    """

    is_running: bool
    database: str
    log: str
    pid: int | None = None
    port: int | None = None
    api_url: str | None = None
    ui_url: str | None = None
    started_at: float | None = None
    prefect_version: str | None = None


@contextlib.contextmanager
def use_server(
    scratch: Path,
    *,
    verbose: bool,
    announce: Callable[[str], None],
    is_awaited: bool = True,
) -> Iterator[ServerHandle]:
    """Have a Prefect server for as long as the context lasts, and Prefect set up to use it.

    The environment of this process is changed for the context, so only one context may be open at
    a time. Prefect may be imported before, at the price of its own log settings until then.

    Args:
        scratch: The scratch folder.
        verbose: Show Prefect's log lines.
        announce: Told in one line which server is used.
        is_awaited: Return only when the server answers. Otherwise call `wait_until_ready` of the
            handle before the first flow: an own server starts meanwhile.

    Yields:
        The server.

    Raises:
        ColdrunError: The given server does not answer, or the own one did not start.
        StorageError: The scratch folder cannot be written.
    """
    folders, state = prepare(scratch), state_folder()
    _silence(verbose=verbose)
    with contextlib.ExitStack() as stack:
        server = (
            _given_server(announce)
            or _running_server(state, announce)
            or stack.enter_context(_own_server(folders, state, announce))
        )
        variables = prefect_environment(scratch, verbose=verbose)
        # Prefect stores the exception of a flow that failed, whatever its settings say
        variables["PREFECT_RESULTS_LOCAL_STORAGE_PATH"] = stack.enter_context(
            tempfile.TemporaryDirectory(
                prefix=f"{os.getpid()}-", dir=folders.own, ignore_cleanup_errors=True
            )
        )
        variables["PREFECT_API_URL"] = server.api_url
        if server.kind != "given":
            variables |= _without_proxy()
        stack.enter_context(_environment(variables))
        _refresh_prefect()
        if is_awaited:
            server.wait_until_ready()
        yield server


def start_server(announce: Callable[[str], None]) -> ServerStatus:
    """Start a server that outlives the terminal; does nothing when one runs.

    Args:
        announce: Told what takes long.

    Returns:
        Where it is.

    Raises:
        ColdrunError: It did not start.
        StorageError: The user's state folder cannot be written.
    """
    folder = prepare_state()
    with locked(folder):
        if (running := read_running(folder)) is not None:
            if running.prefect_version == version("prefect"):
                _await_running(running, announce)
                return server_status()
            announce(f"Replacing the server of Prefect {running.prefect_version}")
            running.end()
        server = launch(
            folder.background,
            log=folder.background_log,
            template=folder.template,
            is_guarded=False,
            ports=BACKGROUND_PORTS,
        )
        try:
            write_running(folder, server)
            announce("Starting a Prefect server that stays (about 10 s)")
            wait_until_ready(server, announce)
        except BaseException:
            server.kill()
            folder.state.unlink(missing_ok=True)
            raise
    return server_status()


def stop_server() -> ServerStatus | None:
    """End the server that `start_server` left running, with all its processes.

    Returns:
        The server that was stopped, None when none ran.

    Raises:
        StorageError: The user's state folder cannot be written.
    """
    folder = prepare_state()
    with locked(folder):
        before = server_status()
        if (running := read_running(folder)) is None:
            return None
        running.end()
        folder.state.unlink(missing_ok=True)
    return before


def server_status() -> ServerStatus:
    """Look for the server that `start_server` left running.

    Returns:
        Where it is, or that there is none.
    """
    folder = state_folder()
    nothing = ServerStatus(
        is_running=False,
        database=str(folder.background / "prefect.db"),
        log=str(folder.background_log),
    )
    if (running := read_running(folder)) is None:
        return nothing
    return replace(
        nothing,
        is_running=True,
        pid=running.pid,
        port=running.port,
        api_url=running.api_url,
        ui_url=running.ui_url,
        started_at=running.created,
        prefect_version=running.prefect_version,
    )


def _given_server(announce: Callable[[str], None]) -> ServerHandle | None:
    """The server of `PREFECT_API_URL`, when that is set."""
    if not (url := os.environ.get("PREFECT_API_URL")):
        return None
    problem = health(url, timeout_seconds=ANSWER_SECONDS, is_users=True)
    if problem is not None:
        raise ColdrunError(
            f"the Prefect server of PREFECT_API_URL={url} cannot be used: {problem}; start it, "
            "mend the address (it ends in /api), or unset PREFECT_API_URL to use a server of "
            "coldrun's own"
        )
    announce(f"Prefect server: {url}")
    return ServerHandle(url, url.rstrip("/").removesuffix("/api"), "given", _do_nothing)


def _running_server(folder: StateFolder, announce: Callable[[str], None]) -> ServerHandle | None:
    """The server that `coldrun server start` left running, when there is one that answers."""
    if (running := read_running(folder)) is None:
        return None
    if running.prefect_version != version("prefect"):
        announce(
            f"The running server is of Prefect {running.prefect_version}, this is "
            f"{version('prefect')}: `coldrun server start` replaces it"
        )
        return None
    try:
        _await_running(running, announce)
    except ColdrunError as error:
        announce(f"Not used: {error}")
        return None
    announce(f"Prefect server: {running.ui_url}")
    return ServerHandle(running.api_url, running.ui_url, "running", _do_nothing)


@contextlib.contextmanager
def _own_server(
    folders: RunFolders, state: StateFolder, announce: Callable[[str], None]
) -> Iterator[ServerHandle]:
    """A server that ends with the context, and with this process however it ends."""
    with contextlib.suppress(OSError):  # without it, the database is migrated anew each time
        state.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=folders.own))
    log = folders.logs / f"{home.name}.log"
    is_ready = False
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        server = launch(home, log=log, template=state.template, is_guarded=True)
        stack.callback(server.kill)
        announce("starting a Prefect server, about 8 s; `coldrun server start` keeps one")

        def wait() -> None:
            nonlocal is_ready
            if is_ready:
                return
            try:
                wait_until_ready(server, announce)
            except ColdrunError:
                # should the copied database be to blame, the next start is without it
                with contextlib.suppress(OSError):
                    state.template.unlink(missing_ok=True)
                raise
            is_ready = True

        yield ServerHandle(server.api_url, None, "own", wait)
    if is_ready:
        log.unlink(missing_ok=True)


def _await_running(state: Running, announce: Callable[[str], None]) -> None:
    """Wait for a server whose process is there: it may just have been started."""
    is_young = time.time() - state.created < START_SECONDS
    for _ in patience(START_SECONDS if is_young else ANSWER_SECONDS, announce):
        if health(state.api_url, timeout_seconds=5) is None:
            return
        if not state.is_alive():
            break
    raise ColdrunError(
        f"the Prefect server left running (process {state.pid}, port {state.port}) does not "
        "answer; `coldrun server stop` ends it"
    )


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables, and give them back their values at the end."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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


def _silence(*, verbose: bool) -> None:
    """One logger of Prefect's is outside its own tree and outside its settings."""
    logging.getLogger("EventsWorker").setLevel(logging.WARNING if verbose else logging.CRITICAL)


def _do_nothing() -> None:
    """A server that answers need not be waited for."""
