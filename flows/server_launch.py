"""Starting a server process and waiting until it answers. Prefect is not imported here."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coldrun.flows.server_environment import server_environment
from coldrun.tasks.lib.errors import ColdrunError, StorageError

START_SECONDS: Final = 300.0
NEWS_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.05
PROGRAM: Final = Path(__file__).with_name("server_process.py")


@dataclass(frozen=True)
class Launched:
    """A server process that was started, whether or not it answers yet.

    Attributes:
        process: The process, leader of its own process group.
        port: The loopback port.
        log: What it says on stdout and stderr.
        guard: The end of the pipe that keeps it alive; None for one that outlives coldrun.
    """

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    guard: int | None

    @property
    def api_url(self) -> str:
        """Where Prefect's client finds it."""
        return f"http://127.0.0.1:{self.port}/api"

    def kill(self) -> None:
        """End the whole group at once and let the pipe go."""
        kill_group(self.process.pid)
        self.process.wait()
        if self.guard is not None:
            with contextlib.suppress(OSError):
                os.close(self.guard)


def launch(
    home: Path, *, log: Path, template: Path, is_guarded: bool, ports: tuple[int, ...] = (0,)
) -> Launched:
    """Start a server process on a loopback port that it already holds.

    Args:
        home: An existing folder for its database.
        log: The file that it writes to in place of a terminal.
        template: Where a migrated, empty database of this version of Prefect is, or is to be kept.
        is_guarded: It ends with the calling process, and takes its folder with it. Otherwise it
            outlives the terminal, and records what is to be seen in the user interface.
        ports: The ports to try, in order; 0 is any free one.

    Returns:
        The process, which does not answer yet.

    Raises:
        StorageError: The folder cannot be written.
        ColdrunError: No port is free.
    """
    database = home / "prefect.db"
    try:
        is_copied = not database.exists() and _copy_template(template, database)
        output = log.open("wb")
    except OSError as error:
        raise StorageError(f"cannot write {home}: {error.strerror or error}") from None
    read_end, write_end = os.pipe() if is_guarded else (None, None)
    with output, contextlib.ExitStack() as stack:
        if read_end is not None:
            stack.callback(os.close, read_end)
        listener = stack.enter_context(_bind(ports))
        port: int = listener.getsockname()[1]
        command = [sys.executable, "-P", str(PROGRAM), "--home", str(home)]
        command += ["--listen-fd", str(listener.fileno())]
        passed = [listener.fileno()]
        if read_end is not None:
            command += ["--parent", str(os.getpid()), "--guard-fd", str(read_end)]
            passed.append(read_end)
        if not template.exists() and not database.exists():
            command += ["--template", str(template)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=home,  # Prefect reads .env, prefect.toml and pyproject.toml where it stands
            env=server_environment(
                dict(os.environ),
                home,
                port=port,
                is_watched=not is_guarded,
                # a durable database may be older than the Prefect that opens it
                is_migrated=is_copied and is_guarded,
            ),
            pass_fds=passed,
            process_group=0 if is_guarded else None,
            start_new_session=not is_guarded,
        )
    return Launched(process, port, log, write_end)


def wait_until_ready(server: Launched, announce: Callable[[str], None]) -> None:
    """Wait until a server that was just started answers.

    Args:
        server: The process.
        announce: Told every half minute that it still takes.

    Raises:
        ColdrunError: It ended, or did not answer in five minutes.
    """
    for waited in patience(START_SECONDS, announce):
        if server.process.poll() is not None:
            raise ColdrunError(
                f"the Prefect server ended while it started (exit code {server.process.returncode})"
                f"{_last_words(server.log)}"
            )
        if health(server.api_url, timeout_seconds=5) is None:
            return
        del waited
    raise ColdrunError(
        f"the Prefect server did not answer within {START_SECONDS:.0f} s{_last_words(server.log)}"
    )


def patience(limit_seconds: float, announce: Callable[[str], None]) -> Iterator[float]:
    """Yield the seconds waited, again and again, with a line for the person every half minute."""
    started = time.monotonic()
    next_news = NEWS_SECONDS
    while (waited := time.monotonic() - started) < limit_seconds:
        yield waited
        if waited >= next_news:
            announce(f"Still waiting for the Prefect server ({waited:.0f} s)")
            next_news += NEWS_SECONDS
        time.sleep(POLL_SECONDS)


def health(api_url: str, *, timeout_seconds: float, is_users: bool = False) -> str | None:
    """Ask a server whether it is well.

    Args:
        api_url: Its address, which ends in `/api`.
        timeout_seconds: How long an answer may take.
        is_users: It is the user's own, and is told who asks.

    Returns:
        None when it is, else what is wrong in a few words.
    """
    if not api_url.startswith(("http://", "https://")):
        return "its address does not begin with http:// or https://"
    handlers: list[urllib.request.BaseHandler] = []
    if api_url.startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=_tls_context()))
    if is_local(api_url):
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        request = urllib.request.Request(  # noqa: S310  # the scheme was checked
            f"{api_url.rstrip('/')}/health", headers=_credentials() if is_users else {}
        )
        with urllib.request.build_opener(*handlers).open(
            request, timeout=timeout_seconds
        ) as response:
            body: bytes = response.read(200)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            return f"it refuses the credentials (HTTP {error.code})"
        return f"it answers HTTP {error.code}"
    except urllib.error.URLError as error:
        return str(getattr(error.reason, "strerror", None) or error.reason)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return str(error) or type(error).__name__
    return None if body.strip() == b"true" else "what answers there is not Prefect's API"


def is_local(url: str) -> bool:
    """Whether an address is on this machine, so that no proxy is asked."""
    return urllib.parse.urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def kill_group(pid: int, sign: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a whole process group, which may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, sign)


def _bind(ports: tuple[int, ...]) -> socket.socket:
    for port in ports:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            # held from here on: on Linux a second bind would succeed while nobody listens
            listener.listen(128)
        except OSError:
            listener.close()
        else:
            return listener
    raise ColdrunError(f"no loopback port is free for a Prefect server (tried {ports})")


def _copy_template(template: Path, database: Path) -> bool:
    """Copy the template where there is one that is whole."""
    try:
        with contextlib.closing(sqlite3.connect(f"{template.as_uri()}?mode=ro", uri=True)) as file:
            (verdict,) = file.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error:
        verdict = "unreadable"
    if verdict != "ok":
        with contextlib.suppress(OSError):
            template.unlink(missing_ok=True)
        return False
    try:
        shutil.copyfile(template, database)
    except FileNotFoundError:
        return False  # another process threw it away meanwhile
    return True


def _credentials() -> dict[str, str]:
    """The header that Prefect's client would send to the user's own server."""
    if key := os.environ.get("PREFECT_API_KEY"):
        return {"Authorization": f"Bearer {key}"}
    if pair := os.environ.get("PREFECT_API_AUTH_STRING"):
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=os.environ.get("PREFECT_API_SSL_CERT_FILE") or None)
    if os.environ.get("PREFECT_API_TLS_INSECURE_SKIP_VERIFY", "").lower() in ("1", "true"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _last_words(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
    return f"; its log is {log} and ends with: {last[:200]}"
