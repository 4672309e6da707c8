"""The reports of history commands, as models: printed, written as JSON, read by scripts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coldrun.tasks.judge.cost_model import Part
from coldrun.tasks.judge.evidence import Evidence, Verdict
from coldrun.tasks.judge.report_model import Counts, MeasurePart, PanelPart, PointPart
from coldrun.tasks.lib.records import Role
from coldrun.tasks.stats.decomposition import Change, StepStatus, SumCheck
from coldrun.tasks.stats.noise import Drift, PooledFloor

PointStatus = Literal["measured", "same_tree", "failed", "skipped"]


class HistoryReport(Part):
    """What a history command reports, schema 1."""

    schema_: Literal[1] = Field(default=1, alias="schema")

    def to_json(self) -> str:
        """The report as indented JSON."""
        return self.model_dump_json(by_alias=True, indent=1)


class RunPart(Part):
    """One of the runs that are compared."""

    run_id: str
    name: str
    verdict: Verdict
    evidence: Evidence
    started_at: str
    wall_seconds: float
    counts: dict[str, int]
    point: PointPart | None


class ArmComparison(Part):
    """One arm in both runs. `differs_in` names the parts of its answers' keys that differ."""

    arm: str
    role: Role
    status: StepStatus
    reasons: list[str]
    clears_noise: bool
    measures: dict[str, Change]
    up_tasks: list[str]
    down_tasks: list[str]
    noise: PooledFloor | None
    differs_in: list[str]
    sentence: str


class Comparison(HistoryReport):
    """Two runs of one panel, paired by task."""

    verdict: str
    exit_code: int = 0
    before: RunPart
    after: RunPart
    panel_digest: str
    primary: str
    arms: list[ArmComparison]
    controls: list[Drift]
    warnings: list[str]


class ScorePart(MeasurePart):
    """An arm's aggregate over `n` tasks at a point."""

    n: int


class HistoryPoint(Part):
    """One commit of the history.

    `measures` are those of the arm that is looked at; `arms` has all of them. `measured_nothing`:
    the arm did not beat the nulls there. `same_as` is the
    commit with the same tree that stands for this one. `run_ids` are its runs, repeats included.
    """

    commit: str
    tree: str
    subject: str
    status: PointStatus
    measures: dict[str, ScorePart] = Field(default_factory=dict)
    committed_at: str = ""
    same_as: str | None = None
    reason: str | None = None
    evidence: str | None = None
    measured_nothing: bool = False
    replayed_from: list[str] = Field(default_factory=list)
    degraded: list[str] = Field(default_factory=list)
    environment_digest: str | None = None
    wall_seconds: float | None = None
    run_ids: list[str] = Field(default_factory=list)
    arms: dict[str, dict[str, ScorePart]] = Field(default_factory=dict)


class HistoryStep(Part):
    """The change of the arm between two neighbouring measured points.

    JSON writes `from` and `to`. `commits` counts the changes of the tree in between.
    """

    from_: str = Field(alias="from")
    to: str
    commits: int
    subject: str
    status: StepStatus
    measures: dict[str, Change]
    up_tasks: list[str]
    down_tasks: list[str]
    reasons: list[str] = Field(default_factory=list)
    clears_noise: bool = False
    is_docs_only: bool = False
    wall_seconds: float | None = None
    controls: list[Drift] = Field(default_factory=list)
    others: dict[str, dict[str, Change]] = Field(default_factory=dict)


class BlindSpot(Part):
    """Neighbouring points that look alike, with unmeasured commits between them."""

    from_: str = Field(alias="from")
    to: str
    commits: int


class HistoryCounts(Counts):
    """Sums over all runs of the history."""

    points: int
    runs: int


class History(HistoryReport):
    """A backfill or a decomposition: the header of a report, then points and steps."""

    kind: Literal["backfill", "decompose"]
    run_id: str
    name: str
    verdict: Verdict
    evidence: Evidence
    exit_code: int
    started_at: str
    wall_seconds: float
    status: Literal["finished", "interrupted"] = "finished"
    counts: HistoryCounts
    panel: PanelPart
    point: PointPart | None
    environment: dict[str, Any]
    arm: str
    primary: str
    roles: dict[str, Role]
    points: list[HistoryPoint]
    steps: list[HistoryStep]
    sum: SumCheck | None
    noise: dict[str, PooledFloor | None]
    closing_controls: list[Drift]
    blind_spots: list[BlindSpot]
    warnings: list[str]
