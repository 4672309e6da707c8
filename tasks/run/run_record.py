"""All that a run left behind, its parts among it, as its report is built from it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from coldrun.tasks.freeze.parts import Parts, split_parts
from coldrun.tasks.lib.records import Task
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPart:
    """What one process did of a run; a run that was resumed has several.

    `started_at` is ISO 8601 in UTC. A part that was killed ends at its last answer.
    """

    started_at: str
    seconds: float
    was_killed: bool = False

    @property
    def ended_at(self) -> dt.datetime:
        """When it ended, as far as is known."""
        return dt.datetime.fromisoformat(self.started_at) + dt.timedelta(seconds=self.seconds)

    def to_row(self) -> dict[str, Any]:
        """The part as a value of the `legs` column."""
        return {**asdict(self), "started_at": dt.datetime.fromisoformat(self.started_at)}


def parts_of(
    records: Sequence[Mapping[str, Any]], captures: Iterable[Capture]
) -> tuple[ProcessPart, ...]:
    """The parts of a run, oldest first.

    Args:
        records: `started_at` of each part, and its `seconds`, None when it was killed.
        captures: The run's answers; an executed one tells that its part was alive then.
    """
    executed = sorted(
        dt.datetime.fromisoformat(capture.captured_at)
        for capture in captures
        if capture.evidence == "executed"
    )
    starts = [dt.datetime.fromisoformat(record["started_at"]) for record in records]
    parts = []
    for record, start, following in zip(records, starts, [*starts[1:], None], strict=True):
        seconds, was_killed = record["seconds"], record["seconds"] is None
        if was_killed:
            alive = [at for at in executed if start <= at and (not following or at < following)]
            seconds = (alive[-1] - start).total_seconds() if alive else 0.0
        parts.append(
            ProcessPart(started_at=record["started_at"], seconds=seconds, was_killed=was_killed)
        )
    return tuple(parts)


def parts_from_rows(rows: Iterable[Mapping[str, Any]] | None) -> tuple[ProcessPart, ...]:
    """The parts in a `legs` column; empty for rows from before there was one."""
    return tuple(
        ProcessPart(**{**row, "started_at": row["started_at"].astimezone(dt.UTC).isoformat()})
        for row in rows or ()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRuns:
    """An arm's earlier runs on the same panel, oldest first: primary scores, median seconds."""

    scores: Sequence[float] = field(default_factory=tuple)
    median_seconds: Sequence[float] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """All that a run left behind.

    `wall_seconds` are of all `legs`; without any, as in rows from before they were recorded, of
    the last one alone.
    """

    manifest: Manifest
    tasks: tuple[Task, ...]
    captures: tuple[Capture, ...]
    sessions: tuple[Mapping[str, Any], ...]
    wall_seconds: float
    legs: tuple[ProcessPart, ...] = ()
    status: Literal["finished", "interrupted"]
    invalid: tuple[str, ...] = ()
    digest: str | None = None
    earlier: Mapping[str, EarlierRuns] = field(default_factory=dict)

    @property
    def parts(self) -> Parts:
        """The tasks of each part of the panel that was asked, the primary one first."""
        parts = split_parts(self.tasks, self.manifest.lock)
        return dict(list(parts.items())[:1]) if self.manifest.only_primary else parts

    @property
    def primary(self) -> RunRecord:
        """The same of the primary part, which all arms were asked."""
        return self.among(next(iter(self.parts.values())))

    def among(self, tasks: Sequence[Task]) -> RunRecord:
        """The same of some tasks alone."""
        ids = {task.id for task in tasks}
        captures = tuple(capture for capture in self.captures if capture.task_id in ids)
        return replace(self, tasks=tuple(tasks), captures=captures)
