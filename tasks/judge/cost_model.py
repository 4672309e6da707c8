"""The cost axis, as a report has it."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from coldrun.tasks.lib.records import Role
from coldrun.tasks.stats.cost_axis import Dominance, LatencyDifference, Standing


class Part(BaseModel):
    """A part of the report: frozen, strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


P = TypeVar("P", bound=Part)


def pick(part: type[P], values: object, **more: Any) -> P:
    """Make a part from the attributes of the same names, and what they lack."""
    return part(**{n: getattr(values, n) for n in part.model_fields if n not in more}, **more)


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
    """Tokens by kind, null where not reported; cache reads and writes are not part of input."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None


class SpentPart(Part):
    """Attempts of some answers, those that did not report tokens, and what they cost."""

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
    """Tokens, cost and time of one arm.

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
    tokens_per_task: float
    cost_per_task: float | None
    unpriced: str | None
    cost_per_success: float | None
    score_per_cost: float | None
    mean_seconds: float | None
    median_seconds: float | None
    retry: RetryPart | None
    standing: Standing | None = None
    on_frontier: float | None = None
    p95_seconds: float | None = None


class CostPairPart(Part):
    """Two arms on the same tasks, `arm` minus `against`; differences are per task, scores rates.

    A limit of cost is null where attempts did not say what they used, and with one task: nothing
    bounds it then. Limits of score per cost bound 95 %.
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
    standing: Dominance
    score_per_cost_low: float | None = None
    score_per_cost_high: float | None = None


class LatencyPart(Part):
    """Seconds per task, `arm` minus `against`, over the tasks that both executed in this run."""

    arm: str
    against: str
    tasks: int
    seconds: LatencyDifference


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
    silent_arms: list[str]
    latencies: list[LatencyPart] = []
