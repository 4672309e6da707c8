"""One child process in its own process group, spoken to over plain pipes with deadlines.

Reading and writing share one `poll`, so a child that writes before it reads cannot dead-lock us,
and an answer that is there at once is seen at once: nothing sleeps.
"""

from __future__ import annotations

import contextlib
import functools
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

READ_BYTES = 1 << 16
DEATH_CHECK_SECONDS = 0.25
"""How often a silent child is looked at: a grandchild may hold its pipe open after its death."""
DRAIN_SECONDS = 0.2
"""How long the output of a dead child is still waited for while a grandchild holds the pipe."""


class ChildError(Exception):
    """What went wrong while a child was spoken to; each class below is one way."""


class ChildTimeoutError(ChildError):
    """The deadline passed."""


class ChildEndedError(ChildError):
    """The child ended, or closed its output, before the answer was complete."""


class ChildOversizedError(ChildError):
    """The child wrote more than is allowed for one answer."""


@dataclass(slots=True, eq=False)
class ProcessGroup:
    """A running process that leads a group of its own. Any thread may kill it."""

    process: subprocess.Popen[bytes]
    _lock: threading.Lock = field(default_factory=threading.Lock, kw_only=True)
    _is_gone: bool = field(default=False, kw_only=True)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def wait(self, seconds: float) -> bool:
        """Wait for its end, so long at most; says whether it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=seconds)
        return self.process.returncode is not None

    def kill(self) -> None:
        """Kill the whole group at once, from any thread. Safe to call twice.

        Once `end` is through this does nothing: the number may belong to another group by then.
        """
        with self._lock:
            if not self._is_gone:
                kill_group(self.process.pid)

    def end(self, *, grace_seconds: float = 0.0) -> None:
        """Kill the group and wait for it; with a grace, let it leave by itself first."""
        if grace_seconds:
            self.wait(grace_seconds)
        self.kill()
        self.wait(10)
        with self._lock:
            self._is_gone = True


@dataclass(slots=True, eq=False)
class Child(ProcessGroup):
    """A running child. Made by `spawn_child`; one thread talks to it, any thread may kill it."""

    _selector: selectors.BaseSelector
    _buffer: bytearray = field(default_factory=bytearray)
    _has_ended: bool = False
    _is_closed: bool = False

    def send(self, data: bytes, *, deadline: float) -> None:
        """Write `data` to the child's input, reading along what it writes meanwhile.

        Raises:
            ChildTimeoutError: `deadline` (of `time.monotonic`) passed first.
            ChildEndedError: The child no longer reads.
        """
        pipe = self.process.stdin
        if pipe is None:
            raise ValueError("this child was started without an input pipe")
        view = memoryview(data)
        self._selector.register(pipe, selectors.EVENT_WRITE)
        try:
            while view:
                for key, _ in self._wait(deadline):
                    if key.fileobj is pipe:
                        view = view[os.write(pipe.fileno(), view) :]
                    else:
                        self._fill()
                if self._has_ended:
                    raise ChildEndedError(self.describe_end())
        except BrokenPipeError as error:
            raise ChildEndedError(self.describe_end()) from error
        finally:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(pipe)

    def read_line(self, *, deadline: float, max_bytes: int) -> bytes:
        """The next line of the child's output, without its line feed.

        Raises:
            ChildTimeoutError: `deadline` (of `time.monotonic`) passed first.
            ChildEndedError: The output ended before a whole line.
            ChildOversizedError: The line is longer than `max_bytes`.
        """
        searched = 0
        while True:
            end = self._buffer.find(b"\n", searched)
            if end >= 0 or len(self._buffer) > max_bytes:
                if end > max_bytes or end < 0:
                    raise ChildOversizedError(f"more than {max_bytes} bytes")
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return line
            searched = len(self._buffer)
            if self._has_ended:
                raise ChildEndedError(self.describe_end())
            if self._wait(deadline):
                self._fill()

    def read_all(self, *, deadline: float, max_bytes: int) -> bytes:
        """All output until the child ends. Raises what `read_line` raises for time and size."""
        while not self._has_ended:
            if self._wait(deadline):
                self._fill()
            if len(self._buffer) > max_bytes:
                raise ChildOversizedError(f"more than {max_bytes} bytes")
        if not self.wait(max(0.0, deadline - time.monotonic())):
            raise ChildTimeoutError
        return bytes(self._buffer)

    def take_stray_output(self) -> bytes:
        """What the child has written although nothing was asked; empty when it kept silent."""
        while not self._has_ended and self._selector.select(0):
            if not self._fill():
                break
        stray = bytes(self._buffer)
        self._buffer.clear()
        return stray

    @property
    def is_alive(self) -> bool:
        """Whether the child still runs and still has its output open."""
        return not self._has_ended and self.process.poll() is None

    def describe_end(self) -> str:
        """How the child ended, in words: exit code, signal, or a closed output."""
        if not self.wait(1.0):
            return "the process closed its output but goes on running"
        return describe_exit(self.process.returncode)

    def end(self, *, grace_seconds: float = 0.0) -> None:
        """End the child and its whole process group; with a grace, let it leave by itself first.

        Safe to call twice. Only the thread that talks to the child may call it; other threads
        call `kill`.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        ProcessGroup.end(self, grace_seconds=grace_seconds)
        self._selector.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _wait(self, deadline: float) -> list[tuple[selectors.SelectorKey, int]]:
        dead_since: float | None = None
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ChildTimeoutError
            ready = self._selector.select(min(left, DEATH_CHECK_SECONDS))
            if ready:
                return ready
            if self.process.poll() is not None:
                now = time.monotonic()
                dead_since = dead_since or now
                if now - dead_since >= DRAIN_SECONDS:
                    self._has_ended = True
                    return []

    def _fill(self) -> bool:
        if self.process.stdout is None:
            raise ValueError("this child was started without an output pipe")
        try:
            chunk = os.read(self.process.stdout.fileno(), READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._has_ended = True
        self._buffer += chunk
        return bool(chunk)


def spawn_child(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    is_interactive: bool = True,
) -> Child:
    """Start a program in a process group of its own.

    Its standard error is appended to `log`. Its input is a pipe when `is_interactive`, else empty.

    Raises:
        OSError: The program cannot be started (missing, not executable, too long a command line).
        ValueError: An argument holds a NUL byte.
    """
    with log.open("ab") as errors:
        process = start_process(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE if is_interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
        )
    selector = selectors.DefaultSelector()
    if process.stdout is not None:
        os.set_blocking(process.stdout.fileno(), False)
        selector.register(process.stdout, selectors.EVENT_READ)
    if process.stdin is not None:
        os.set_blocking(process.stdin.fileno(), False)
    return Child(process, selector)


@functools.cache
def _starter() -> ThreadPoolExecutor:
    """One thread that lives on: a sandbox ends with the thread that started it."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")


def start_process(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own; `options` are those of `subprocess.Popen`."""
    starting: Future[subprocess.Popen[bytes]] = _starter().submit(
        lambda: subprocess.Popen(list(argv), start_new_session=True, **options)
    )
    return starting.result()


def describe_exit(code: int) -> str:
    """An exit code in words; a sandbox gives 128 and the number of the signal."""
    if 128 < code <= 128 + signal.NSIG:
        code = 128 - code
    if code >= 0:
        return f"the process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"the process was ended by signal {name}"


def kill_group(group: int, sign: signal.Signals = signal.SIGKILL) -> None:
    """Kill every process of a group, or send it another signal; one that is gone is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)


def end_strays(home: Path) -> int:
    """Kill the processes whose HOME is `home`, which left their group; says how many they were."""
    marker = str(home)
    found = 0
    # Not `process_iter`: it keeps processes by number, and refuses to kill the next of that number.
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if process.environ().get("HOME") == marker and pid != os.getpid():
                process.kill()
                found += 1
    return found
