"""The cost axis of a run: what each arm took, and every two configurations on both axes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.config import ArmConfig, PricesConfig
from coldrun.tasks.judge.cost_model import (
    ArmCostPart,
    CostPairPart,
    CostsPart,
    PricesPart,
    RetryPart,
)
from coldrun.tasks.judge.retries import account_arm
from coldrun.tasks.judge.score_table import Answered
from coldrun.tasks.judge.scored import ParseAnswer, ScoredArm, read_capture
from coldrun.tasks.judge.spending import Pricing, count_silent, count_tokens, sum_spent
from coldrun.tasks.lib.records import AnswerKind, Attempt
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.run_record import RunRecord
from coldrun.tasks.stats.cost_comparison import CostComparison, CostedArm, CostPair, compare_costs
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.pareto import Dominance
from coldrun.tasks.stats.ratios import describe_cost_ratio

FloatArray = NDArray[np.float64]

TOKENS = "tokens"


def build_costs(
    record: RunRecord,
    arms: Sequence[ScoredArm],
    *,
    judged: Collection[str],
    is_measurement: bool,
    parse: ParseAnswer,
    prices: PricesConfig | None = None,
    seed: int,
) -> CostsPart | None:
    """Describe what the arms of a run took.

    Args:
        record: The run.
        arms: Its arms, in the order of the configuration.
        judged: The arms that get a verdict; they come first in a pair.
        is_measurement: Whether the answers may be compared at all; the ledger is there anyway.
        parse: Reads the items of an answer.
        prices: Another snapshot than the run's own.
        seed: Of the bootstrap.

    Returns:
        None when no arm reported tokens.
    """
    if not any(arm.has_tokens for arm in arms):
        return None
    used = prices or record.manifest.config.prices
    pricing = Pricing(None if used is None else used.snapshot)
    known = [arm for arm in arms if arm.has_tokens or not arm.asks_model]
    reason = _find_reason(known, pricing)
    unit = TOKENS if reason or pricing.snapshot is None else pricing.snapshot.currency

    def cost(attempts: Sequence[Attempt]) -> float:
        if unit == TOKENS:
            return float(count_tokens(attempts))
        return float(pricing.price(attempts) or 0)

    task_costs = {arm.config.name: _cost_per_task(record, arm, cost) for arm in known}
    compared = None
    if is_measurement:
        compared = compare_costs(
            [
                CostedArm(
                    name=arm.config.name,
                    scores=arm.scores,
                    costs=task_costs[arm.config.name],
                    is_lower_bound=arm.asks_model and count_silent(arm.captures) > 0,
                    noise_tasks=arm.noise_tasks,
                )
                for arm in known
                if arm.is_comparable
            ],
            judged=judged,
            margin_tasks=record.manifest.config.measure.margin_tasks,
            seed=seed,
        )
    tasks = {task.id: task for task in record.tasks}
    primary = parse_measure(record.manifest.config.primary)
    retries = {
        arm.config.name: account_arm(
            arm.config,
            arm.captures,
            tasks,
            measure=primary,
            read=_reader(arm.config, record.manifest.config.panel.answer_kind, parse),
            cost=cost,
        )
        for arm in arms
        if arm.has_tokens
    }
    return CostsPart(
        measure=primary.text,
        unit=unit,
        reason=reason,
        prices=_prices_part(used, record.manifest.config.prices),
        confidence=compared and compared.confidence,
        arms=[
            _arm_part(
                arm,
                pricing,
                task_costs[arm.config.name],
                compared=compared,
                retry=retries.get(arm.config.name),
            )
            for arm in known
        ],
        pairs=[_pair_part(pair) for pair in compared.pairs] if compared else [],
        silent_arms=[arm.config.name for arm in arms if arm not in known],
    )


def _reader(arm: ArmConfig, kind: AnswerKind, parse: ParseAnswer) -> Callable[[Capture], Answered]:
    return lambda capture: read_capture(capture, arm, kind, parse)


def _find_reason(arms: Sequence[ScoredArm], pricing: Pricing) -> str | None:
    """Why not all arms have a price, None when they have."""
    gaps = [
        f"{arm.config.name}: {gap}" if pricing.snapshot else gap
        for arm in arms
        if arm.asks_model
        for gap in pricing.find_gaps(
            attempt for capture in arm.captures for attempt in capture.reply.attempts
        )
    ]
    return "; ".join(dict.fromkeys(gaps)) or None


def _cost_per_task(
    record: RunRecord, arm: ScoredArm, cost: Callable[[Sequence[Attempt]], float]
) -> FloatArray:
    """What the answers to each task cost, trials averaged, in panel order; replayed ones too."""
    spent: dict[str, list[Attempt]] = {task.id: [] for task in record.tasks}
    for capture in arm.captures:
        spent[capture.task_id] += capture.reply.attempts
    return np.array([cost(attempts) / arm.trials for attempts in spent.values()], np.float64)


def _arm_part(
    arm: ScoredArm,
    pricing: Pricing,
    costs: FloatArray,
    *,
    compared: CostComparison | None,
    retry: RetryPart | None,
) -> ArmCostPart:
    executed = [capture for capture in arm.captures if capture.evidence == "executed"]
    replayed = [capture for capture in arm.captures if capture.evidence == "replayed"]
    attempts = [attempt for capture in arm.captures for attempt in capture.reply.attempts]
    gaps = pricing.find_gaps(attempts) if arm.asks_model else []
    spent = sum_spent(executed, pricing)
    if not arm.asks_model:
        spent = spent.model_copy(update={"cost": 0.0, "attempts_without_tokens": 0})
    ratio = describe_cost_ratio(arm.scores, costs) if arm.is_comparable else None
    per_success = None if ratio is None else ratio.dollars_per_success
    seconds = [capture.reply.seconds for capture in executed]
    name = arm.config.name
    tasks = len(costs) * arm.trials
    price = pricing.price(attempts) if arm.asks_model else 0
    return ArmCostPart(
        arm=name,
        role=arm.config.role,
        spent=spent,
        replayed=sum_spent(replayed, pricing) if replayed and arm.asks_model else None,
        tokens_per_task=count_tokens(attempts) / tasks,
        cost_per_task=None if price is None else float(price) / tasks,
        unpriced="; ".join(gaps) or None,
        cost_per_success=per_success if per_success is not None and isfinite(per_success) else None,
        score_per_cost=None if ratio is None else ratio.score_per_dollar,
        mean_seconds=fmean(seconds) if seconds else None,
        median_seconds=median(seconds) if seconds else None,
        retry=retry,
        standing=compared.standings.get(name) if compared else None,
        on_frontier=compared.on_frontier.get(name)
        if compared and compared.on_frontier is not None
        else None,
    )


_STANDINGS: Mapping[Dominance, str] = {
    "A_DOMINATES": "dominates",
    "B_DOMINATES": "dominated",
    "TRADE_OFF": "trade_off",
    "UNRESOLVED": "unresolved",
}


def _pair_part(pair: CostPair) -> CostPairPart:
    return CostPairPart.model_validate(
        {
            "arm": pair.first,
            "against": pair.second,
            "difference": pair.difference,
            "low": pair.accuracy.low,
            "high": pair.accuracy.high,
            "cost_difference": pair.cost_difference,
            "cost_low": pair.cost.low if isfinite(pair.cost.low) else None,
            "cost_high": pair.cost.high if isfinite(pair.cost.high) else None,
            "cost_ratio": pair.cost_ratio,
            "score_per_cost_difference": pair.score_per_cost and pair.score_per_cost.difference,
            "standing": _STANDINGS[pair.verdict],
        }
    )


def _prices_part(used: PricesConfig | None, own: PricesConfig | None) -> PricesPart | None:
    if used is None or used.snapshot is None or used.digest is None:
        return None
    snapshot = used.snapshot
    is_repriced = own is None or own.digest != used.digest
    return PricesPart(
        file=used.file,
        date=snapshot.date.isoformat(),
        source=snapshot.source,
        currency=snapshot.currency,
        digest=used.digest,
        is_repriced=is_repriced,
        replaces_digest=own.digest if is_repriced and own else None,
    )
