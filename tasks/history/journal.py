"""The journal of a history: which points were measured by which runs, so that it can go on.

history/<id>.json is written whole after every event; a killed program leaves it as it was. A
history that is asked for again while its journal is unfinished continues there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.concealment import conceal_values
from coldrun.tasks.lib.errors import StorageError, UsageError
from coldrun.tasks.lib.machine.files import write_whole
from coldrun.tasks.lib.safe_json import BadJsonError, load_record
from coldrun.tasks.run.capture import hold_run
from coldrun.warehouse.damage import warn_of_damage

EntryStatus = Literal["running", "measured", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One measurement of one commit; `repeat` numbers those of the same commit."""

    commit: str
    repeat: int
    status: EntryStatus
    run_id: str | None = None
    reason: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Written:
    """What the file of a journal holds."""

    status: Literal["running", "finished"]
    started_at: str
    request: dict[str, Any]
    entries: list[Entry]


@dataclass(slots=True)
class Journal:
    """The journal of one history. `is_continued` tells that a dead program had begun it."""

    path: Path
    request: Mapping[str, Any]
    started_at: str
    is_continued: bool = False
    _entries: dict[tuple[str, int], Entry] = field(default_factory=dict)

    @property
    def history_id(self) -> str:
        """The id of the history."""
        return self.path.stem

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in the order in which they were begun."""
        return tuple(self._entries.values())

    def find(self, commit: str, repeat: int) -> Entry | None:
        """What is known of a measurement."""
        return self._entries.get((commit, repeat))

    def note(self, entry: Entry) -> None:
        """Write down how a measurement stands."""
        self._entries[entry.commit, entry.repeat] = entry
        self.save(is_finished=False)

    def save(self, *, is_finished: bool) -> None:
        """Write the journal."""
        values = {
            "status": "finished" if is_finished else "running",
            "started_at": self.started_at,
            "request": dict(self.request),
            "entries": [asdict(entry) for entry in self.entries],
        }
        write_whole(self.path, canonical_json(conceal_values(values)))


@contextmanager
def hold_journal(
    warehouse: Path, request: Mapping[str, Any], *, new_id: str, now: str
) -> Iterator[Journal]:
    """Take up the unfinished journal of the same request, or begin one; hold it for a block.

    `request` are JSON values that say what is asked for, coldrun's own code among them.
    """
    folder = warehouse / "history"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write the warehouse {warehouse}: {error.strerror}; "
            "name a writable folder with --warehouse or COLDRUN_WAREHOUSE"
        ) from None
    wanted = json.loads(canonical_json(dict(request)))
    with ExitStack() as stack:
        journal = _take_up(folder, warehouse, wanted, stack)
        if journal is None:
            stack.enter_context(hold_run(warehouse, new_id))
            journal = Journal(folder / f"{new_id}.json", request, now)
            journal.save(is_finished=False)
        yield journal


def _take_up(
    folder: Path, warehouse: Path, request: Mapping[str, Any], stack: ExitStack
) -> Journal | None:
    for path in sorted(folder.glob("*.json"), reverse=True):
        if read_journal(path, request) is None:
            continue
        with ExitStack() as held:
            try:
                held.enter_context(hold_run(warehouse, path.stem))
            except UsageError:
                continue
            journal = read_journal(path, request)
            if journal is not None:
                stack.push(held.pop_all())
                return journal
    return None


def read_journal(path: Path, request: Mapping[str, Any]) -> Journal | None:
    """The journal of an unfinished history with this request, if the file is one."""
    try:
        found = load_record(path.read_bytes(), _Written)
    except OSError:
        return None
    except BadJsonError as error:
        warn_of_damage(path, f"{error}; what it says of a history counts as not there")
        return None
    if found.status != "running" or found.request != request:
        return None
    return Journal(
        path,
        request,
        found.started_at,
        is_continued=True,
        _entries={(entry.commit, entry.repeat): entry for entry in found.entries},
    )
