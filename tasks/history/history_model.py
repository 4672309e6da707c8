"""What history commands say, as models: printed, written as JSON, read by scripts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coldrun.tasks.judge.evidence import Evidence, Verdict
from coldrun.tasks.judge.gate_model import Part
from coldrun.tasks.judge.report_model import PanelPart, PointPart
from coldrun.tasks.lib.records import Role
from coldrun.tasks.stats.decomposition import StepStatus
from coldrun.tasks.stats.noise import Drift

PointStatus = Literal["measured", "same_tree", "failed", "skipped"]


class ChangePart(Part):
    """How one measure moved between two points of one arm.

    `difference`, `low` and `high` (95 %) are in tasks, `before` and `after` too. `p` is one-sided
    in the direction of the change; `holm_p` is p adjusted for all steps of the report.
    """

    up: int
    down: int
    difference: float
    p: float
    low: float
    high: float
    before: float
    after: float
    n: int
    holm_p: float | None = None


class FloorPart(Part):
    """The noise floor of an arm at the primary measure: flips between runs of the same code."""

    runs: int
    pairs: int
    flips: int
    flip_rate: float
    flip_rate_upper: float
    band_tasks: int


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
    measures: dict[str, ChangePart]
    up_tasks: list[str]
    down_tasks: list[str]
    noise: FloorPart | None
    differs_in: list[str]
    sentence: str


class Comparison(Part):
    """Two runs of one panel, paired by task."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    verdict: str
    exit_code: int = 0
    before: RunPart
    after: RunPart
    panel_digest: str
    primary: str
    arms: list[ArmComparison]
    controls: list[Drift]
    warnings: list[str]

    def to_json(self) -> str:
        """The comparison as indented JSON."""
        return self.model_dump_json(by_alias=True, indent=1)


class ScorePart(Part):
    """An arm's aggregate at a point: `count` is null where tasks score fractions."""

    value: float
    count: int | None
    n: int
    low: float
    high: float


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


class StepChange(Part):
    """One measure over a step: tasks up and down, their net, and its test."""

    up: int
    down: int
    difference: float
    p: float
    low: float
    high: float
    holm_p: float | None = None


class HistoryStep(Part):
    """The change of the arm between two neighbouring measured points.

    JSON writes `from` and `to`. `commits` counts the changes of the tree in between.
    """

    from_: str = Field(alias="from")
    to: str
    commits: int
    subject: str
    status: StepStatus
    measures: dict[str, StepChange]
    up_tasks: list[str]
    down_tasks: list[str]
    reasons: list[str] = Field(default_factory=list)
    clears_noise: bool = False
    is_docs_only: bool = False
    wall_seconds: float | None = None
    controls: list[Drift] = Field(default_factory=list)
    others: dict[str, dict[str, StepChange]] = Field(default_factory=dict)


class SumPart(Part):
    """The check that the steps add up to the change between the ends, in tasks."""

    steps_difference: float
    ends_difference: float
    adds_up: bool
    churn: int
    flapping_tasks: list[str]


class BlindSpot(Part):
    """Neighbouring points that look alike, with commits between them that nobody measured."""

    from_: str = Field(alias="from")
    to: str
    commits: int


class HistoryCounts(Part):
    """Sums over all runs of the history, in answers but `points` and `runs`."""

    tasks: int
    planned: int
    executed: int
    replayed: int
    resumed: int
    infra: int
    abstained: int
    degraded: int
    points: int
    runs: int


class History(Part):
    """A backfill or a decomposition: the header of a report, then points and steps."""

    schema_: Literal[1] = Field(default=1, alias="schema")
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
    sum: SumPart | None
    noise: dict[str, FloorPart | None]
    closing_controls: list[Drift]
    blind_spots: list[BlindSpot]
    warnings: list[str]

    def to_json(self) -> str:
        """The history as indented JSON."""
        return self.model_dump_json(by_alias=True, indent=1)
