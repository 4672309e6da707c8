"""What an analysis concludes, in the form in which reports carry it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from coldrun.tasks.judge.evidence import Outcome
from coldrun.tasks.lib.records import Role


class Part(BaseModel):
    """A part of the report: frozen, strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class MeasurePart(Part):
    """One aggregate. `count` is null where tasks score fractions; `low`, `high` bound 95 %."""

    value: float
    count: int | None
    low: float
    high: float


class AgainstPart(Part):
    """A candidate against one other arm, paired by task. `difference` is a rate."""

    arm: str
    up: int | None
    down: int | None
    p: float
    difference: float
    role: Role = "null"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    holm_p: float | None = None


class GatePart(Part):
    """The one gate: a candidate at the primary measure against every null."""

    arm: str
    measure: str
    outcome: Outcome
    margin_tasks: float
    mde_tasks: float | None
    against: list[AgainstPart]
    beaten_by: list[str]
    compared: list[AgainstPart] = []
    reason: str = ""
    noise_floor_tasks: float | None = None


class BarPart(Part):
    """A registered bar and whether it was met."""

    arm: str
    measure: str
    at_least: float
    value: float
    met: bool
    rule: str = "point"
    against: str | None = None
