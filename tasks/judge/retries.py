"""What the second calls of an arm did: how often, at what cost, and what they fixed. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from coldrun.tasks.arms.service.chat_kind import ChatArm
from coldrun.tasks.config import ArmConfig
from coldrun.tasks.judge.cost_model import RetryPart
from coldrun.tasks.judge.score_table import Answered, score_answer
from coldrun.tasks.judge.spending import tries_of
from coldrun.tasks.lib.records import Attempt, Task
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.stats.measures import Measure
from coldrun.tasks.stats.retry_once import RetryCounts, account_retries

Cost = Callable[[Sequence[Attempt]], float]


def account_arm(
    arm: ArmConfig,
    captures: Sequence[Capture],
    tasks: Mapping[str, Task],
    *,
    measure: Measure,
    read: Callable[[Capture], Answered],
    cost: Cost,
) -> RetryPart | None:
    """The account of an arm that asks twice, None for one that neither may nor did.

    Args:
        captures: Its answers of planned trials, with their attempts.
        read: Gives the items of an answer, or that the tool failed.
        cost: What attempts cost.
    """
    captures = [capture for capture in captures if own_attempts(capture)]
    is_declared = isinstance(arm, ChatArm) and arm.retry == "once"
    if not captures or not (is_declared or any(map(is_retried, captures))):
        return None
    first_cost, retry_costs = [], []
    first_right, last_right, fired = [], [], []
    for capture in captures:
        first, *later = tries_of(own_attempts(capture)).values()
        task = tasks[capture.task_id]
        last = score_answer(read(capture), task, measure) > 0
        last_right.append(last)
        first_right.append(
            score_answer(_first_answer(capture, read), task, measure) > 0 if later else last
        )
        fired.append(bool(later))
        first_cost.append(cost(first))
        if later:
            retry_costs.append(cost([attempt for tried in later for attempt in tried]))
    outcomes = list(zip(first_right, last_right, fired, strict=True))
    counts = RetryCounts(
        n=len(outcomes),
        first_pass=sum(first_right),
        fired_on_fail=sum(again and not before for before, _, again in outcomes),
        fired_on_pass=sum(again and before for before, _, again in outcomes),
        fixed=sum(after and not before for before, after, _ in outcomes),
        broke=sum(before and not after for before, after, _ in outcomes),
        cost_first_usd=fmean(first_cost),
        cost_retry_usd=fmean(retry_costs) if retry_costs else 0.0,
    )
    account = account_retries(counts)
    return RetryPart(
        answers=counts.n,
        fired=account.fired,
        fixed=counts.fixed,
        broke=counts.broke,
        first_pass=account.first_pass,
        final=account.final,
        signal_recall=account.signal_recall,
        signal_precision=account.signal_precision,
        cost=sum(retry_costs),
        cost_per_net_fix=account.cost_per_net_fix_usd,
    )


def is_retried(capture: Capture) -> bool:
    """Whether an answer took more than one try."""
    return len(tries_of(own_attempts(capture))) > 1


def own_attempts(capture: Capture) -> list[Attempt]:
    """The attempts that led to an answer, without those of a failed one that it replaced."""
    return [attempt for attempt in capture.reply.attempts if not attempt.was_replaced]


def _first_answer(capture: Capture, read: Callable[[Capture], Answered]) -> Answered:
    """The answer of the first of several tries. One that failed is none; of one that was tried
    again for its words, the trajectory has them."""
    failed = Answered(items=(), is_infra=True)
    if min(own_attempts(capture), key=lambda attempt: attempt.number).status == "infra":
        return failed
    try:
        raw = json.loads(capture.reply.trajectory or "")[0]["raw"]
    except (ValueError, LookupError, TypeError):
        return failed
    if not isinstance(raw, str):
        return failed
    return read(replace(capture, reply=replace(capture.reply, status="answered", raw=raw)))
