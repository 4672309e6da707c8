"""The report of a run, schema 1: what is printed, written as JSON, and read by scripts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coldrun.tasks.freeze.parts import Part as PartName
from coldrun.tasks.judge.cost_model import CostsPart, Part
from coldrun.tasks.judge.evidence import Evidence, Outcome, Verdict
from coldrun.tasks.lib.records import Role
from coldrun.tasks.run.run_record import ProcessPart


class MeasurePart(Part):
    """One aggregate. `count` is null where tasks score fractions.

    `low` and `high` bound 95 % for tasks to come, `population_low` and `population_high` for the
    tasks that the part was drawn from, where it says anything of them.
    """

    value: float
    count: int | None
    low: float
    high: float
    population_low: float | None = None
    population_high: float | None = None


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
    part: PartName = "balanced"
    compared: list[AgainstPart] = []
    reason: str = ""
    noise_floor_tasks: float | None = None


class PartSize(Part):
    """A part of the panel, and how many tasks it has."""

    name: PartName
    tasks: int


class OtherPart(PartSize):
    """What the arms came to on a part that is not the primary one, nulls chosen on it first.

    Its `gates` decide nothing; of the `population`, which built-in arms are asked, there are none.
    """

    arms: list[ArmPart]
    gates: list[GatePart]


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


class EffectPart(Part):
    """A paired change on some tasks, from one arm to another, as transitions.

    `tasks` says which: all, those in which the component was used, or the others. `difference` is a
    rate; it, its limits and `p` are null where there is no task. `holm_p` is over all effects of
    the report.
    """

    tasks: Literal["all", "used", "unused"]
    n: int
    kept: int
    gained: int
    regressed: int
    residual: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    holm_p: float | None = None


class AblationPart(Part):
    """From the arm `of` to `arm`, which differs from it in `factors` and in nothing else.

    `is_bundle`: in several; what they did together belongs to none of them alone. `component` is
    what tells used tasks from others, null where nothing does. There are no effects where the run
    or one of the two measured nothing.
    """

    arm: str
    of: str
    factors: list[str]
    is_bundle: bool
    component: str | None
    effects: list[EffectPart]


class UsedAgainstPart(Part):
    """From another arm to the one that uses a component, where it was used and where it was not."""

    arm: str
    role: Role
    effects: list[EffectPart]


class UsagePart(Part):
    """In how many tasks an arm used the component that it declares; `events` counts the uses.

    A task counts as used when any of its trials used it. `is_exercised` is false below the declared
    `min_use_share`: the arm's comparisons tell nothing of the component then. `reached_by` has the
    other arms that used it, with the number of tasks.
    """

    arm: str
    component: str
    used: int
    n: int
    events: int
    min_use_share: float
    is_exercised: bool
    reached_by: dict[str, int]
    against: list[UsedAgainstPart]


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
    """The product commit that was measured."""

    repo: str
    commit: str
    tree: str
    is_dirty: bool


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
    part: PartName = "balanced"
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
    production_nulls: dict[str, float] = {}
    ablations: list[AblationPart] = []
    usage: list[UsagePart] = []
    costs: CostsPart | None = None
    digest: str | None = None
    not_sealed: dict[str, str] | None = None
    without_product: dict[str, str] = {}
    method: str = ""
    clusters: ClustersPart | None = None
    parts: list[PartSize] = []
    others: list[OtherPart] = []

    def gate_of(self, arm: str, part: PartName) -> GatePart | None:
        """The gate of an arm on another part, None where it has none there."""
        gates = (gate for other in self.others if other.name == part for gate in other.gates)
        return next((gate for gate in gates if gate.arm == arm), None)

    def to_json(self) -> str:
        """The report as indented JSON, UTF-8, `NaN` never.

        `arms` and `gates` are those of all parts, of the primary one first.
        """
        arms = [*self.arms, *(arm for other in self.others for arm in other.arms)]
        gates = [*self.gates, *(gate for other in self.others for gate in other.gates)]
        whole = self.model_copy(update={"arms": arms, "gates": gates})
        return whole.model_dump_json(by_alias=True, indent=1, exclude={"others"})
