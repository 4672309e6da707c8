"""What programs say, read while it comes: a file that never grows past a limit."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import select
import termios
import threading
import time
from pathlib import Path

CHUNK_BYTES = 1024 * 1024
EXCERPT_BYTES = 2000
SETTLE_SECONDS = 1.0


class BoundedLog:
    """A named pipe that programs write to, and the file that a thread copies it into.

    When the file would grow past the limit, its older half goes: it has what was said last.
    """

    def __init__(self, folder: Path, *, limit_bytes: int) -> None:
        """Begin to read. Close it, or its thread goes on."""
        self.inlet = folder / "stderr.pipe"
        self.file = folder / "stderr.log"
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._is_closed = False
        os.mkfifo(self.inlet, 0o600)
        self._pipe = os.open(self.inlet, os.O_RDWR | os.O_CLOEXEC)
        self._out = self.file.open("wb", buffering=0)
        threading.Thread(target=self._copy, name="log", daemon=True).start()

    def size(self) -> int:
        """Bytes that were said and are kept."""
        self._settle()
        return self.file.stat().st_size

    def read(self, *, since: int = 0, limit: int = EXCERPT_BYTES) -> str | None:
        """The last `limit` bytes after offset `since`; None when there are none."""
        self._settle()
        try:
            with self.file.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(min(since, size), size - limit))
                return file.read(limit).decode("utf-8", errors="replace").strip() or None
        except OSError:
            return None

    def close(self) -> None:
        """Stop reading."""
        self._settle()
        self._is_closed = True
        os.write(self._pipe, b"\n")  # wakes the thread

    def _copy(self) -> None:
        waiting = select.poll()  # `select.select` takes no descriptor above 1,023
        waiting.register(self._pipe, select.POLLIN)
        while True:
            waiting.poll()
            with self._lock:
                data = os.read(self._pipe, CHUNK_BYTES)
                if self._is_closed:
                    break
                if self._out.tell() + len(data) > self._limit:
                    self._keep_half()
                with contextlib.suppress(OSError):  # a full disk loses what is said, no more
                    self._out.write(data)
        self._out.close()
        os.close(self._pipe)

    def _keep_half(self) -> None:
        kept = self.file.read_bytes()[-self._limit // 2 :]
        self._out.seek(0)
        self._out.truncate()
        self._out.write(kept)

    def _settle(self) -> None:
        """Wait until the file has what was written, for a second at most."""
        deadline = time.monotonic() + SETTLE_SECONDS
        waiting = array.array("i", [1])
        while not self._is_closed and time.monotonic() < deadline:
            with self._lock:
                fcntl.ioctl(self._pipe, termios.FIONREAD, waiting)
            if not waiting[0]:
                return
            time.sleep(0.001)
