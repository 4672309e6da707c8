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
    """An arm against another one, paired by task.

    `difference` is the mean of this arm's scores minus the other's, `value` that of the other. `up`
    and `down` count the tasks that are better and worse, null when the other is an expectation. `p`
    is one-sided for "better": exact where all differences have one size.
    """

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
    """The one gate: a candidate at the primary measure against every null.

    `against` has one part per null, `compared` one per control and floor; `beaten_by` names those
    of the latter that score more. `noise_floor_tasks` is null with a single trial.
    """

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


class ClusteredScore(Part):
    """An arm's primary measure with an interval that allows for correlation within clusters.

    The limits are null with a single cluster. `effective_tasks` is how many independent tasks the
    panel is worth: all tasks over `design_effect`, the clustered variance over the plain one.
    """

    value: float
    low: float | None
    high: float | None
    design_effect: float | None
    effective_tasks: float | None


class ClusteredDifference(Part):
    """A paired difference with a cluster-robust interval; `p` flips whole clusters, one-sided."""

    arm: str
    against: str
    difference: float
    low: float | None
    high: float | None
    p: float


class ClustersPart(Part):
    """The primary measure where tasks of one `stratum` value are not independent of each other.

    `smallest_p` is the least p that flipping all clusters can reach. Tasks without the mark are one
    cluster.
    """

    stratum: str
    clusters: int
    smallest_p: float
    arms: dict[str, ClusteredScore]
    differences: list[ClusteredDifference]
