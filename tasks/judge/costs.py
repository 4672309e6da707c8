"""The cost axis of a run: what each arm took, and every two configurations on both axes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import fmean

import numpy as np

from coldrun.tasks.config import PricesConfig
from coldrun.tasks.judge.cost_comparison import CostComparison, CostedArm, compare_costs
from coldrun.tasks.judge.cost_model import ArmCostPart, CostsPart, PricesPart, RetryPart, pick
from coldrun.tasks.judge.retries import account_arm
from coldrun.tasks.judge.score_table import ScoredArm
from coldrun.tasks.judge.spending import Pricing, count_silent, count_tokens, sum_spent
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.records import Attempt
from coldrun.tasks.run.run_record import RunRecord
from coldrun.tasks.stats.cost_axis import describe_cost_ratio, quantile_seconds
from coldrun.tasks.stats.measures import parse_measure

TOKENS = "tokens"


def build_costs(
    record: RunRecord,
    arms: Sequence[ScoredArm],
    *,
    judged: Collection[str],
    is_measurement: bool,
    prices: PricesConfig | None = None,
    seed: int,
) -> CostsPart | None:
    """Describe what the arms of a run took; None when no arm reported tokens.

    Names in `judged` come first in a pair; `prices` are others than the run's own.
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

    task_costs = {}
    for arm in known:
        spent: dict[str, list[Attempt]] = {task.id: [] for task in record.tasks}
        for capture in arm.captures:
            spent[capture.task_id] += capture.reply.attempts
        each = [cost(attempts) / arm.trials for attempts in spent.values()]
        task_costs[arm.config.name] = np.array(each, np.float64)
    compared = None
    if is_measurement:
        compared = compare_costs(
            [
                CostedArm(
                    name=arm.config.name,
                    scores=arm.scores,
                    costs=task_costs[arm.config.name],
                    seconds=_seconds_per_task(arm),
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
            kind=record.manifest.config.panel.answer_kind,
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
        pairs=compared.pairs if compared else [],
        silent_arms=[arm.config.name for arm in arms if arm not in known],
        latencies=compared.latencies if compared else [],
    )


def _find_reason(arms: Sequence[ScoredArm], pricing: Pricing) -> str | None:
    gaps = [
        f"{arm.config.name}: {gap}" if pricing.snapshot else gap
        for arm in arms
        if arm.asks_model
        for gap in pricing.find_gaps(
            attempt for capture in arm.captures for attempt in capture.reply.attempts
        )
    ]
    return "; ".join(dict.fromkeys(gaps)) or None


def _seconds_per_task(arm: ScoredArm) -> dict[str, float]:
    seconds: dict[str, list[float]] = {}
    for capture in arm.captures:
        if capture.evidence == "executed" and not capture.is_infra:
            seconds.setdefault(capture.task_id, []).append(capture.reply.seconds)
    return {task_id: fmean(values) for task_id, values in seconds.items()}


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
        cost_per_success=ratio and ratio.cost_per_success,
        score_per_cost=ratio and ratio.score_per_cost,
        mean_seconds=fmean(seconds) if seconds else None,
        median_seconds=quantile_seconds(seconds, 0.5),
        retry=retry,
        standing=compared.standings.get(name) if compared else None,
        on_frontier=compared.on_frontier.get(name) if compared else None,
        p95_seconds=quantile_seconds(seconds, 0.95),
    )


def _prices_part(used: PricesConfig | None, own: PricesConfig | None) -> PricesPart | None:
    if used is None or used.snapshot is None or used.digest is None:
        return None
    snapshot = used.snapshot
    is_repriced = own is None or own.digest != used.digest
    return pick(
        PricesPart,
        snapshot,
        file=used.file,
        date=snapshot.date.isoformat(),
        digest=used.digest,
        is_repriced=is_repriced,
        replaces_digest=own.digest if is_repriced and own else None,
    )
