"""What the second calls of an arm did: how often, at what cost, and what they fixed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from coldrun.tasks.arms.service.chat_kind import ChatArm
from coldrun.tasks.config import ArmConfig
from coldrun.tasks.judge.cost_model import RetryPart
from coldrun.tasks.judge.score_table import Answered, read_answer, score_answer
from coldrun.tasks.judge.spending import tries_of
from coldrun.tasks.lib.records import AnswerKind, Attempt, Task
from coldrun.tasks.lib.safe_json import load_json
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.stats.measures import Measure

Cost = Callable[[Sequence[Attempt]], float]


def account_arm(
    arm: ArmConfig,
    captures: Sequence[Capture],
    tasks: Mapping[str, Task],
    *,
    measure: Measure,
    kind: AnswerKind,
    cost: Cost,
) -> RetryPart | None:
    """Account for the second calls of an arm; None for an arm that never asks twice."""
    captures = [capture for capture in captures if own_attempts(capture)]
    is_declared = isinstance(arm, ChatArm) and arm.retry == "once"
    if not captures or not (is_declared or any(map(is_retried, captures))):
        return None
    outcomes: Counter[tuple[bool, bool, bool]] = Counter()
    retry_cost = 0.0
    for capture in captures:
        _, *later = tries_of(own_attempts(capture)).values()
        task = tasks[capture.task_id]
        last = score_answer(read_answer(capture, arm, kind), task, measure) > 0
        first = last
        if later:
            first = score_answer(_first_answer(capture, arm, kind), task, measure) > 0
            retry_cost += cost([attempt for tried in later for attempt in tried])
        outcomes[bool(later), first, last] += 1
    return account_retries(
        answers=len(captures),
        first_right=sum(count for (_, first, _), count in outcomes.items() if first),
        fired_on_wrong=outcomes[True, False, False] + outcomes[True, False, True],
        fired_on_right=outcomes[True, True, False] + outcomes[True, True, True],
        fixed=outcomes[True, False, True],
        broke=outcomes[True, True, False],
        cost=retry_cost,
    )


def account_retries(
    *,
    answers: int,
    first_right: int,
    fired_on_wrong: int,
    fired_on_right: int,
    fixed: int,
    broke: int,
    cost: float,
) -> RetryPart:
    """Account for second calls: right in the end = right at first + fixed - broke.

    `cost` is that of all second calls.
    """
    wrong, fired, net = answers - first_right, fired_on_wrong + fired_on_right, fixed - broke
    if (
        answers < 1
        or not fixed <= fired_on_wrong <= wrong
        or not broke <= fired_on_right <= first_right
    ):
        raise ValueError(
            f"these counts contradict each other: of {answers} answers {first_right} right, asked "
            f"again {fired_on_wrong} wrong and {fired_on_right} right, fixed {fixed}, broke {broke}"
        )
    return RetryPart(
        answers=answers,
        fired=fired,
        fixed=fixed,
        broke=broke,
        first_pass=first_right / answers,
        final=(first_right + net) / answers,
        signal_recall=fired_on_wrong / wrong if wrong else None,
        signal_precision=fired_on_wrong / fired if fired else None,
        cost=cost,
        cost_per_net_fix=cost / net if net > 0 else None,
    )


def is_retried(capture: Capture) -> bool:
    """Whether an answer took more than one try."""
    return len(tries_of(own_attempts(capture))) > 1


def own_attempts(capture: Capture) -> list[Attempt]:
    """The attempts that led to an answer, without those of a failed one that it replaced."""
    return [attempt for attempt in capture.reply.attempts if not attempt.was_replaced]


def _first_answer(capture: Capture, arm: ArmConfig, kind: AnswerKind) -> Answered:
    # Where the try was repeated because of what it said, the trajectory has its words.
    failed = Answered(items=(), is_infra=True)
    if min(own_attempts(capture), key=lambda attempt: attempt.number).status == "infra":
        return failed
    try:
        raw = load_json(capture.reply.trajectory or "")[0]["raw"]
    except (ValueError, LookupError, TypeError):
        return failed
    if not isinstance(raw, str):
        return failed
    first = replace(capture, reply=replace(capture.reply, status="answered", raw=raw))
    return read_answer(first, arm, kind)
