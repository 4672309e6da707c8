"""A server that coldrun starts itself, and that listens on a port of this machine, or on one of its
own in the sandbox, which a relay leads to."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from coldrun.tasks.arms.driver import Driver, StartError
from coldrun.tasks.arms.templates import fill_text
from coldrun.tasks.arms.workspace.isolation import PRIVATE_FOLDERS
from coldrun.tasks.lib.machine.child_process import ProcessGroup, describe_exit, start_process

RELAY = "relay"
RELAY_PROGRAM = (Path(__file__).parent / "relay_program.py").read_text("utf-8")
POLL_SECONDS = 0.05
DEATH_SECONDS = 0.2


@dataclass(slots=True, eq=False)
class ListeningServer(ProcessGroup):
    """A running server. Any thread may kill it."""

    port: int
    relay_folder: int | None = None

    @property
    def relay(self) -> str | None:
        """The socket that leads to the port; None where the port is this machine's.

        It goes by an open folder, since the names of sockets are short.
        """
        return None if self.relay_folder is None else f"/proc/self/fd/{self.relay_folder}/{RELAY}"

    def describe_end(self) -> str:
        """How it ended, in words."""
        code = self.process.poll()
        return "the server still runs" if code is None else describe_exit(code)

    def wait_until_ready(self, *, deadline: float) -> None:
        """Wait until a process of its group listens on the port.

        A port that another program took meanwhile is not taken for this server's.

        Raises:
            StartError: It ended, or does not listen by `deadline` (of `time.monotonic`).
        """
        while not self._listens():
            if not self.is_alive:
                raise StartError(self.describe_end())
            if time.monotonic() > deadline:
                raise StartError(f"no process of it listens on port {self.port} in time")
            time.sleep(POLL_SECONDS)

    def wait_briefly(self) -> None:
        """Give a server that just broke off a moment to be seen dead."""
        self.wait(DEATH_SECONDS)

    def end(self, *, grace_seconds: float = 0.0) -> None:
        """End the server, and close the way to its relay."""
        ProcessGroup.end(self, grace_seconds=grace_seconds)
        folder, self.relay_folder = self.relay_folder, None
        if folder is not None:
            os.close(folder)

    def _listens(self) -> bool:
        if self.relay is not None:
            return Path(self.relay).exists()
        with contextlib.suppress(psutil.Error):
            first = psutil.Process(self.process.pid)
            for process in (first, *first.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    if any(
                        found.status == psutil.CONN_LISTEN and found.laddr.port == self.port
                        for found in process.net_connections("tcp")
                    ):
                        return True
        return False


def find_free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_server(driver: Driver[Any]) -> ListeningServer:
    """Start the server of a driver's arm in the session's folders, and wait until it listens.

    The driver holds it from the start, so that aborting the session ends the wait as well.

    Raises:
        StartError: It cannot be started, ended, or does not listen in time. It is gone then.
    """
    arm, workspace = driver.arm, driver.workspace
    folder: int | None = None
    deadline = time.monotonic() + arm.startup_timeout_seconds
    port = find_free_port()
    values = {**workspace.values, "port": str(port)}
    argv = [fill_text(text, values) for text in arm.argv]
    try:
        if workspace.view.is_sandboxed:
            place = workspace.root / PRIVATE_FOLDERS["XDG_RUNTIME_DIR"]
            (place / RELAY).unlink(missing_ok=True)
            argv[0] = workspace.find_program(argv[0])
            folder = os.open(place, os.O_RDONLY)
            relay = (workspace.view.python, "-I", "-c", RELAY_PROGRAM, str(place / RELAY))
            argv = [*relay, str(port), *argv]
        with workspace.log.open("ab") as output:
            process = start_process(
                workspace.command(argv),
                cwd=workspace.cwd,
                env=dict(workspace.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
    except (OSError, ValueError) as error:
        if folder is not None:
            os.close(folder)
        raise StartError(f"{arm.argv[0]!r} cannot be started: {error}") from None
    server = ListeningServer(process, port, folder)
    driver.hold(server)
    try:
        server.wait_until_ready(deadline=deadline)
    except StartError:
        driver.let_go(server)
        server.end()
        raise
    return server
