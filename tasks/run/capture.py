"""The captures of one run: one small file per finished answer, written whole and never changed.

captures/<run_id>/run.json                 what the run was started with
captures/<run_id>/panel.jsonl              the tasks it asks
captures/<run_id>/<key>.json               an answer (or abstention)
captures/<run_id>/<key>.infra-<n>.json     a failure of the tool; executed again on --resume
captures/<run_id>/session-<id>.json        how a session came up and what it left
captures/<run_id>/leg-<n>.json             when a process began to work on the run, and for how long
captures/<run_id>/shards.json              the questions of each shard, with their keys
captures/<run_id>/invalid-<digest>.json    a reason that makes the run invalid
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import math
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from coldrun.tasks.lib.canonical import canonical_json, digest_bytes, digest_json
from coldrun.tasks.lib.concealment import conceal, conceal_values
from coldrun.tasks.lib.errors import EditedError, StorageError, UsageError
from coldrun.tasks.lib.records import Attempt, ComponentEvent, Reply, Role, SessionRecord
from coldrun.tasks.lib.safe_json import (
    BadJsonError,
    load_object,
    load_record,
    to_record,
)
from coldrun.tasks.lib.table_record import Int32, Moment, from_row, storages, to_row
from coldrun.warehouse.damage import warn_of_damage

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One answer with all that identifies and explains it."""

    key: str
    key_parts: Mapping[str, str]
    run_id: str
    task_id: str
    arm: str
    role: Role
    trial: Int32
    seed: int
    captured_at: Moment
    reply: Reply
    session_id: str | None = None
    corpus_dir: str | None = None
    is_dirty: bool = False
    is_identified: bool = True
    evidence: Literal["executed", "replayed"] = "executed"
    is_resumed: bool = False
    source_run_id: str | None = None

    @property
    def is_infra(self) -> bool:
        """Whether the tool itself failed."""
        return self.reply.status == "infra"

    def as_replay(self, run_id: str) -> Capture:
        """This executed capture as a replayed row of another run; it keeps its own date."""
        return replace(
            self,
            run_id=run_id,
            evidence="replayed",
            is_resumed=False,
            source_run_id=self.run_id,
        )

    def attempt_rows(self) -> list[dict[str, Any]]:
        """The rows of the `attempts` table."""
        return [{**self._identity(), **to_row(attempt)} for attempt in self.reply.attempts]

    def event_rows(self) -> list[dict[str, Any]]:
        """The rows of the `events` table."""
        return [{**self._identity(), **to_row(event)} for event in self.reply.events]

    def _identity(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in DETAIL_OF}


_CELLS: Mapping[str, Any] = {
    **dict.fromkeys(("text", "large_text"), str | None),
    "bool": bool | None,
    "int": int | None,
    "int32": int | None,
    "float": float | None,
    "texts": list[str] | None,
    "map": list[tuple[str, str]] | None,
}


def _read_session(data: bytes) -> dict[str, Any]:
    row, found = load_object(data), storages(SessionRecord)
    return {name: to_record(row.get(name), _CELLS[storage]) for name, storage in found.items()}


@dataclass(frozen=True, slots=True)
class _Leg:
    started_at: str
    seconds: float | None


def _read_leg(data: bytes) -> _Leg:
    leg = load_record(data, _Leg)
    dt.datetime.fromisoformat(leg.started_at)
    return leg


DETAIL_OF = ("run_id", "key", "task_id", "arm", "trial")
"""The columns of a capture that its attempts and events repeat."""


def capture_to_json(capture: Capture) -> bytes:
    """The bytes of a capture file."""
    values = json.loads(canonical_json(asdict(capture)))
    return canonical_json({**values, "digest": digest_json(values)})


def capture_from_json(data: bytes) -> Capture:
    """The capture in a file's bytes.

    Raises:
        ValueError: The bytes are no capture of this version.
        EditedError: It was edited.
    """
    values = load_object(data)
    written = values.pop("digest", None)
    if written != digest_json(values):
        raise EditedError("a capture was edited")
    return to_record(values, Capture)


def capture_from_row(
    row: Mapping[str, Any],
    attempts: list[Mapping[str, Any]],
    events: list[Mapping[str, Any]],
) -> Capture:
    """The capture in a landed row and its attempt and event rows."""
    reply = from_row(
        Reply,
        row,
        attempts=tuple(from_row(Attempt, attempt) for attempt in attempts),
        events=tuple(from_row(ComponentEvent, event) for event in events),
    )
    return from_row(Capture, row, reply=reply)


@dataclass(slots=True)
class CaptureStore:
    """The capture folder of one run. Safe to write from several threads."""

    folder: Path
    _serial: int = 0
    _serial_lock: threading.Lock = field(default_factory=threading.Lock)

    def write_manifest(self, manifest: Mapping[str, Any], panel: bytes) -> None:
        """Record what the run is started with, before anything is asked."""
        self.write("panel.jsonl", panel)
        sealed = {**manifest, "digest": digest_json(manifest)}
        self.write("run.json", canonical_json(sealed))

    def read_manifest(self) -> tuple[dict[str, Any], bytes]:
        """What the run was started with, and the bytes of its panel.

        Raises:
            UsageError: The folder holds no run.
            EditedError, StorageError: It was edited or damaged.
        """
        try:
            manifest = self._read("run.json", dict[str, Any])
            written = manifest.pop("digest", None)
            if written is not None and written != digest_json(manifest):
                raise EditedError(
                    f"{self.folder / 'run.json'} was edited since the run began; start a new one"
                )
            return manifest, (self.folder / "panel.jsonl").read_bytes()
        except FileNotFoundError:
            raise UsageError(
                f"no run {self.folder.name} to continue in {self.folder.parent}; "
                "`coldrun runs` lists those that can be"
            ) from None

    def put(self, capture: Capture) -> None:
        """Write one finished answer.

        Raises:
            StorageError: The disk is full or read-only. What was written before stays.
        """
        name = capture.key
        if capture.is_infra:
            name += f".infra-{len(list(self.folder.glob(f'{name}.infra-*.json'))) + 1}"
        self.write(f"{name}.json", capture_to_json(capture))

    def put_session(self, session: SessionRecord) -> None:
        """Write how one session went (again at its end, with what it left)."""
        self.write(
            f"session-{session.session_id}.json", canonical_json(conceal_values(to_row(session)))
        )

    def read_captures(self) -> dict[str, Capture]:
        """All captures by key. An answer goes before failures, a later failure before earlier.

        A damaged file (emptied by a full disk, say) counts as not there, with a warning.
        """
        found: dict[str, Capture] = {}
        for path in sorted(self.folder.glob("*.json"), key=_age_of_failure):
            if path.name.startswith(("run.", "shards.", "session-", "leg-", "invalid-")):
                continue
            try:
                capture = capture_from_json(path.read_bytes())
            except EditedError:
                raise EditedError(
                    f"{path} was edited after its answer came; remove it, and it is asked again"
                ) from None
            except ValueError as error:
                warn_of_damage(path, f"{error}; its answer counts as not there")
                continue
            known = found.get(capture.key)
            if known is None or known.is_infra:
                found[capture.key] = capture
        return found

    def read_sessions(self) -> list[dict[str, Any]]:
        """The rows of all sessions, in order of their ids; damaged files are left out, and told."""
        return list(self._read_whole("session-*.json", _read_session))

    def write_shards(self, shards: Sequence[Mapping[str, Any]]) -> None:
        """Record the questions of each shard; a later plan of the run replaces them."""
        self.write("shards.json", canonical_json(list(shards)))

    def read_shards(self) -> list[dict[str, Any]]:
        """The shards of the last plan, in the order of their numbers.

        Raises:
            UsageError: The folder holds no planned run.
        """
        try:
            return self._read("shards.json", list[dict[str, Any]])
        except FileNotFoundError:
            raise UsageError(f"run {self.folder.name} is not planned in {self.folder}") from None

    def put_invalid(self, reason: str) -> None:
        """Write down a reason that makes the run invalid, once."""
        data = canonical_json(conceal(reason))
        self.write(f"invalid-{digest_bytes(data)[-16:]}.json", data)

    def read_invalid(self) -> list[str]:
        """The reasons that make the run invalid. A damaged one is a reason too."""
        found = []
        for path in sorted(self.folder.glob("invalid-*.json")):
            try:
                found.append(load_record(path.read_bytes(), str))
            except BadJsonError:
                found.append(f"{path.name} said why, and is damaged")
        return found

    def put_leg(self, number: int, *, started_at: str, seconds: float | None) -> None:
        """Write when a leg began, and at its end once more, with how long it took."""
        values = {"started_at": started_at, "seconds": seconds}
        self.write(f"leg-{number:04d}.json", canonical_json(values))

    def count_legs(self) -> int:
        """How many legs have begun."""
        return len(list(self.folder.glob("leg-*.json")))

    def read_legs(self) -> list[dict[str, Any]]:
        """The records of all legs, oldest first; damaged files are left out, and told."""
        return [asdict(leg) for leg in self._read_whole("leg-*.json", _read_leg)]

    def _read(self, name: str, record: type[Value]) -> Value:
        path = self.folder / name
        try:
            return load_record(path.read_bytes(), record)
        except BadJsonError as error:
            raise StorageError(
                f"{path} is damaged ({error}); restore it, or start a new run"
            ) from None

    def _read_whole(self, pattern: str, read: Callable[[bytes], Value]) -> Iterator[Value]:
        for path in sorted(self.folder.glob(pattern)):
            try:
                yield read(path.read_bytes())
            except ValueError as error:
                warn_of_damage(path, f"{error}; it counts as not there")

    def remove(self) -> None:
        """Remove the folder, once all that it holds has landed in the warehouse.

        The manifest goes first: without it the folder is no run that could be continued, so a
        program killed in here leaves a finished run and not one whose answers are missing.
        """
        (self.folder / "run.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name: str, data: bytes) -> None:
        """Write one file of the folder whole: a reader sees all of it or nothing."""
        with self._serial_lock:
            self._serial += 1
            temporary = self.folder / f".{os.getpid()}-{self._serial}.tmp"
        try:
            temporary.write_bytes(data)
            temporary.replace(self.folder / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise StorageError(
                f"cannot write {self.folder / name}: {error.strerror}; the answers finished so "
                f"far are kept, mend it and continue with --resume {self.folder.name}"
            ) from None


def _age_of_failure(path: Path) -> tuple[str, float]:
    key, _, number = path.name.removesuffix(".json").partition(".infra-")
    return key, int(number) if number else math.inf


def open_store(warehouse: Path, run_id: str) -> CaptureStore:
    """The capture folder of a run, made if it is not there.

    Raises:
        StorageError: It cannot be made.
    """
    folder = warehouse / "captures" / run_id
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write the warehouse {warehouse}: {error.strerror}; "
            "name a writable folder with --warehouse or COLDRUN_WAREHOUSE"
        ) from None
    return CaptureStore(folder)


@contextmanager
def hold_run(warehouse: Path, run_id: str) -> Iterator[None]:
    """Hold the lock of one run: two programs never write the same run.

    The lock is the operating system's, so a killed program leaves none behind.

    Raises:
        UsageError: Another program is writing this run.
    """
    folder = warehouse / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / f"{run_id}.lock").open("a")
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror}") from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"run {run_id} is being written by another program; wait for it or stop it"
            ) from None
        yield
