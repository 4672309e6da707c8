"""Retry once on a failure signal: what it fixed, what it broke, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryCounts:
    """What happened on n tasks. Costs are per call, in US dollars."""

    n: int
    first_pass: int
    fired_on_fail: int
    fired_on_pass: int
    fixed: int
    broke: int
    cost_first_usd: float
    cost_retry_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAccount:
    """The account of a retry arm. Rates are in [0, 1], None where their base is empty.

    `signal_recall`: share of the failures on which the retry fired; `signal_precision`: share of
    the firings that were on failures. `cost_per_net_fix_usd` is None when it fixed no more than it
    broke. `oracle_final` is what the same retries would reach if they never fired on a pass; such
    an arm, which reads hidden gold, must be labelled `oracle`.
    """

    first_pass: float
    final: float
    fired: int
    fire_rate: float
    signal_recall: float | None
    signal_precision: float | None
    net_fixed: int
    total_cost_usd: float
    cost_per_net_fix_usd: float | None
    oracle_final: float


def account_retries(counts: RetryCounts) -> RetryAccount:
    """Account for a retry-once arm: final = first + fixed - broke.

    Raises:
        ValueError: The counts contradict each other.
    """
    failures = counts.n - counts.first_pass
    if (
        counts.n < 1
        or not counts.fixed <= counts.fired_on_fail <= failures
        or not counts.broke <= counts.fired_on_pass <= counts.first_pass
    ):
        raise ValueError(f"these counts contradict each other: {counts}")
    fired = counts.fired_on_fail + counts.fired_on_pass
    net = counts.fixed - counts.broke
    retry_cost = fired * counts.cost_retry_usd
    return RetryAccount(
        first_pass=counts.first_pass / counts.n,
        final=(counts.first_pass + net) / counts.n,
        fired=fired,
        fire_rate=fired / counts.n,
        signal_recall=counts.fired_on_fail / failures if failures else None,
        signal_precision=counts.fired_on_fail / fired if fired else None,
        net_fixed=net,
        total_cost_usd=counts.n * counts.cost_first_usd + retry_cost,
        cost_per_net_fix_usd=retry_cost / net if net > 0 else None,
        oracle_final=(counts.first_pass + counts.fixed) / counts.n,
    )


def expect_any_of_attempts(p_per_task: Sequence[float], *, attempts: int = 2) -> float:
    """Average 1 - (1 - p)^attempts over tasks, each with its own p.

    On the mean p the same formula overstates (Jensen): tasks that never pass are not saved.
    """
    return fmean(1 - (1 - p) ** attempts for p in p_per_task)
