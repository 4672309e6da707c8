"""The report of a run, schema 1: what is printed, written as JSON, and read by scripts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tasks.analyse.judgement import BarPart, Evidence, GatePart, MeasurePart, Part, Verdict
from tasks.records import Role


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
    """The product commit that was measured, and the one whose set-up it shared, if it did."""

    repo: str
    commit: str
    tree: str
    is_dirty: bool
    setup_commit: str | None = None


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


class PricesPart(Part):
    """The dated snapshot that costs are computed with.

    `digest` is the SHA-256 of the file's bytes. `replaces_digest` is that of the snapshot which the
    run was started with, where the report was computed with another one.
    """

    file: str
    date: str
    source: str
    currency: str
    digest: str
    is_repriced: bool = False
    replaces_digest: str | None = None


class TokensPart(Part):
    """Tokens by kind, each apart: cache reads and writes are no part of input. Null: not said."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None


class SpentPart(Part):
    """What some answers took: attempts, and those of them that did not say what they used."""

    answers: int
    attempts: int
    attempts_without_tokens: int
    tokens: TokensPart
    cost: float | None


class RetryPart(Part):
    """What second calls did. Counts are of answers; costs are in the unit of `CostsPart`.

    `fixed`: wrong before, right after; `broke`: the other way round. Right is a score above 0 at
    the primary measure. `signal_recall` is the share of wrong first answers that were asked again,
    `signal_precision` the share of those asked again that were wrong.
    """

    answers: int
    fired: int
    fixed: int
    broke: int
    first_pass: float
    final: float
    signal_recall: float | None
    signal_precision: float | None
    cost: float
    cost_per_net_fix: float | None


class ArmCostPart(Part):
    """What one arm took.

    `spent` is this run's ledger: executed answers, every failed attempt included. `replayed` is
    what the replayed answers took when they were executed; in this run they cost nothing. Per task,
    per success and per unit of cost count both, because they describe the configuration.
    `cost` is null where `unpriced` says why. `standing` and `on_frontier` are null where the arm
    is not compared.
    """

    arm: str
    role: Role
    spent: SpentPart
    replayed: SpentPart | None
    tokens_per_task: float | None
    cost_per_task: float | None
    unpriced: str | None
    cost_per_success: float | None
    score_per_cost: float | None
    mean_seconds: float | None
    median_seconds: float | None
    retry: RetryPart | None
    standing: Literal["efficient", "dominated", "unresolved"] | None = None
    on_frontier: float | None = None


class CostPairPart(Part):
    """Two arms on the same tasks, `arm` minus `against`; differences are per task, scores rates.

    A limit of cost is null where attempts did not say what they used: nothing bounds it then.
    `cost_ratio` is of the sums, null where `against` cost nothing or a sum is not known.
    """

    arm: str
    against: str
    difference: float
    low: float
    high: float
    cost_difference: float
    cost_low: float | None
    cost_high: float | None
    cost_ratio: float | None
    score_per_cost_difference: float | None
    standing: Literal["dominates", "dominated", "trade_off", "unresolved"]


class CostsPart(Part):
    """The cost axis of a run in which arms reported tokens.

    `unit` is that of all comparisons: the snapshot's currency, or "tokens" where `reason` says why
    it is not money. `confidence` is that of each interval of `pairs`; those of one arm hold
    together at 95 %.
    """

    measure: str
    unit: str
    reason: str | None
    prices: PricesPart | None
    confidence: float | None
    arms: list[ArmCostPart]
    pairs: list[CostPairPart]
    silent_arms: list[str] = []


class LegPart(Part):
    """What one process did of a run; `was_killed`: `seconds` count to its last answer alone."""

    started_at: str
    seconds: float
    was_killed: bool


class Report(Part):
    """All that a run has to say."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    run_id: str
    name: str = ""
    verdict: Verdict
    evidence: Evidence
    exit_code: int
    started_at: str
    wall_seconds: float
    legs: list[LegPart] = []
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

    def to_json(self) -> str:
        """The report as indented JSON, UTF-8, `NaN` never."""
        return self.model_dump_json(by_alias=True, indent=1)
