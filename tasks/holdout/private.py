"""Running where nobody reads: a warehouse that is gone afterwards, and sessions kept quiet."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from coldrun.tasks.arms.base import Session
from coldrun.tasks.arms.workspace.isolation import prune_sessions
from coldrun.tasks.lib.errors import ColdrunError, InvalidRunError, StorageError
from coldrun.tasks.lib.machine.file_locks import FileLock, take_lock, try_lock
from coldrun.tasks.lib.machine.files import remove_folder
from coldrun.tasks.lib.records import Point, Question, Reply, SessionEnd, SessionStart
from coldrun.tasks.product.point_use import use_point
from coldrun.tasks.run.execute import Abort, OpenSession
from coldrun.tasks.run.run_lifecycle import StartedRun


@contextmanager
def private_warehouse(scratch: Path) -> Iterator[Path]:
    """A warehouse that nobody else reads and that is gone afterwards.

    What a killed opening left behind is removed first.
    """
    folder = scratch.resolve() / "holdout"
    if _sweep_dead(folder):
        prune_sessions(scratch)
    root = folder / f"opening-{secrets.token_hex(6)}"
    lock = take_lock(root.with_suffix(".lock"))
    try:
        try:
            root.mkdir(mode=0o700)
        except OSError as error:
            raise StorageError(f"cannot write {root}: {error.strerror}") from None
        yield root
    finally:
        _remove(root, lock)


def _remove(root: Path, lock: FileLock) -> None:
    remove_folder(root)
    root.with_suffix(".lock").unlink(missing_ok=True)
    lock.release()


def _sweep_dead(folder: Path) -> bool:
    """Remove the folders of openings whose program is gone; whether there were any."""
    found = False
    for root in folder.glob("opening-*/"):
        lock = try_lock(root.with_suffix(".lock"))
        if lock is not None:
            _remove(root, lock)
            found = True
    return found


@dataclass(slots=True)
class SessionWatch:
    """Counts questions that were asked, keeps tools quiet, and cleans up after them."""

    asked: int = 0
    point: Point | None = None

    def guard(self, started: StartedRun) -> None:
        """Put every session of the run under watch."""
        self.point = started.manifest.point
        run = started.run
        run.arms = tuple(
            replace(arm, open_session=self._opener(arm.open_session)) for arm in run.arms
        )

    def sweep(self) -> None:
        """Remove what sessions left in the product's checkout."""
        if self.point is not None:
            with contextlib.suppress(ColdrunError, OSError):
                used = use_point(self.point)
                if used is not None:
                    used.release()

    def _opener(self, open_session: OpenSession) -> OpenSession:
        def open_watched(trial: int, on_starting: Callable[[Abort], None] | None = None) -> Session:
            return _WatchedSession(open_session(trial, on_starting), self)

        return open_watched


@dataclass(slots=True)
class _WatchedSession:
    """A session whose errors say only of which kind they are."""

    inner: Session
    watch: SessionWatch

    @property
    def start(self) -> SessionStart:
        return self.inner.start

    def ask(self, question: Question) -> Reply:
        self.watch.asked += 1
        try:
            return self.inner.ask(question)
        except InvalidRunError:
            raise InvalidRunError("a session proved to be another product") from None
        except Exception as error:  # noqa: BLE001 - of any error, only the kind may be told
            raise ColdrunError(f"a session failed ({type(error).__name__})") from None

    def close(self) -> SessionEnd:
        return self.inner.close()

    def abort(self) -> None:
        self.inner.abort()
