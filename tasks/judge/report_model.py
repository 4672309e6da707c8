"""The report of a run, schema 1: what is printed, written as JSON, and read by scripts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coldrun.tasks.judge.attribution_model import AblationPart, UsagePart
from coldrun.tasks.judge.cost_model import CostsPart
from coldrun.tasks.judge.evidence import Evidence, Verdict
from coldrun.tasks.judge.gate_model import BarPart, ClustersPart, GatePart, MeasurePart, Part
from coldrun.tasks.lib.records import Role
from coldrun.tasks.run.run_record import ProcessPart


class Counts(Part):
    """What was planned and how it came to be; all in answers but `tasks`."""

    tasks: int
    planned: int
    executed: int
    replayed: int
    resumed: int
    infra: int
    abstained: int
    degraded: int


class DistributionPart(Part):
    """The answer distribution of the panel that was asked."""

    shapes: int
    top_share: float
    effective_shapes: float


class PanelPart(Part):
    """Which panel; `candidates == solvable + sum(drops)`."""

    name: str
    digest: str
    base: str | None
    head: str | None
    candidates: int
    solvable: int
    drops: dict[str, int]
    distribution: DistributionPart
    kind: str = ""
    names_gold_share: float | None = None
    uses: list[dict[str, str]] = []
    changes_after_the_fact: list[str] = []


class PointPart(Part):
    """The product commit that was measured; `setup_commit`: the one whose set-up it shared."""

    repo: str
    commit: str
    tree: str
    is_dirty: bool
    setup_commit: str | None = None


class BudgetPart(Part):
    """What `samples` trials of an arm are worth, averaged over tasks; a task is right above 0.

    `coverage`: some trial is right. `verified`: the trial is right that a verifier takes first, by
    how often the verifier errs, either way; it answers nothing when it takes none.
    """

    samples: int
    coverage: float
    verified: dict[str, float]


class ArmPart(Part):
    """One arm's aggregates. `n` is the number of tasks, infra and missing ones included."""

    name: str
    role: Role
    kind: str
    n: int
    measures: dict[str, MeasurePart]
    trials: int = 1
    executed: int = 0
    replayed: int = 0
    infra: int = 0
    abstained: int = 0
    degraded: int = 0
    answer_seconds: float | None = None
    startup_seconds: float | None = None
    indexing_seconds: float | None = None
    is_withheld: bool = False
    replayed_from: list[str] = []
    stability: dict[str, float | None] = {}
    misses: dict[str, int] = {}
    budgets: list[BudgetPart] = []


class ProductionPart(Part):
    """An arm's primary measure weighted to the dev tasks that the sample was drawn from.

    `estimate` is over the strata that were asked, which hold `coverage` of the dev tasks;
    `lowest` and `highest` count the rest as 0 and as 1.
    """

    tasks: int
    estimate: float
    standard_error: float | None
    lowest: float
    highest: float
    coverage: float


class Report(Part):
    """The whole report of a run."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    run_id: str
    name: str = ""
    verdict: Verdict
    evidence: Evidence
    exit_code: int
    started_at: str
    wall_seconds: float
    legs: list[ProcessPart] = []
    status: Literal["finished", "interrupted"] = "finished"
    counts: Counts
    panel: PanelPart
    point: PointPart | None
    environment: dict[str, Any]
    primary: str = ""
    arms: list[ArmPart]
    gates: list[GatePart]
    bars: list[BarPart]
    warnings: list[str]
    reasons: list[str] = []
    strata: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    production: dict[str, ProductionPart] = {}
    production_nulls: dict[str, float] = {}
    ablations: list[AblationPart] = []
    usage: list[UsagePart] = []
    costs: CostsPart | None = None
    method: str = ""
    clusters: ClustersPart | None = None

    def to_json(self) -> str:
        """The report as indented JSON, UTF-8, `NaN` never."""
        return self.model_dump_json(by_alias=True, indent=1)
