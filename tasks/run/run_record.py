"""All that a run left behind, as its report is built from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from coldrun.tasks.lib.records import Task
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.manifest import Manifest
from coldrun.tasks.run.run_parts import Leg


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
    legs: tuple[Leg, ...] = ()
    status: Literal["finished", "interrupted"]
    invalid: tuple[str, ...] = ()
    earlier: Mapping[str, EarlierRuns] = field(default_factory=dict)
