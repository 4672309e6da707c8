"""The legs of a run: each what one process did of it; a run that was resumed has several. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coldrun.tasks.run.capture import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One leg. `started_at` is an ISO time in UTC; `was_killed` says that nobody saw its end, so
    that `seconds` count to the last answer it gave alone.
    """

    started_at: str
    seconds: float
    was_killed: bool = False

    @property
    def ended_at(self) -> dt.datetime:
        """When it ended, as far as is known."""
        return dt.datetime.fromisoformat(self.started_at) + dt.timedelta(seconds=self.seconds)

    def to_row(self) -> dict[str, Any]:
        """The leg as a value of the `legs` column."""
        return {**asdict(self), "started_at": dt.datetime.fromisoformat(self.started_at)}


def legs_of(records: Sequence[Mapping[str, Any]], captures: Iterable[Capture]) -> tuple[Leg, ...]:
    """The legs in the records that they left, oldest first.

    Args:
        records: `started_at` of each leg, and its `seconds`, None when it did not end itself.
        captures: The run's answers; an executed one tells that its leg was alive then.
    """
    executed = sorted(
        dt.datetime.fromisoformat(capture.captured_at)
        for capture in captures
        if capture.evidence == "executed"
    )
    starts = [dt.datetime.fromisoformat(record["started_at"]) for record in records]
    legs = []
    for record, start, following in zip(records, starts, [*starts[1:], None], strict=True):
        seconds, was_killed = record["seconds"], record["seconds"] is None
        if was_killed:
            alive = [at for at in executed if start <= at and (not following or at < following)]
            seconds = (alive[-1] - start).total_seconds() if alive else 0.0
        legs.append(Leg(started_at=record["started_at"], seconds=seconds, was_killed=was_killed))
    return tuple(legs)


def legs_from_rows(rows: Iterable[Mapping[str, Any]] | None) -> tuple[Leg, ...]:
    """The legs in a `legs` column; none in rows from before there was one."""
    return tuple(
        Leg(**{**row, "started_at": row["started_at"].astimezone(dt.UTC).isoformat()})
        for row in rows or ()
    )
