"""Every planned answer of a run: query, gold, answer, and why it missed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from coldrun.tasks.config import ArmConfig, Config
from coldrun.tasks.freeze.distribution import Discrimination, describe_discrimination
from coldrun.tasks.judge.misses import NAMES_GOLD, classify_miss, names_gold
from coldrun.tasks.judge.score_table import read_answer, score_answer
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.records import Task
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.run_record import RunRecord
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.measures.definition import find_first_rank
from coldrun.tasks.stats.paired import minimum_detectable_effect


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One planned answer of one arm.

    `status` is `answered`, `abstained`, `infra` or `missing`. `first_gold` is the rank of the
    first right item, None without one. `score` is at the primary measure; a failure scores 0.
    `miss` is the class of a miss, None for a hit. `names_gold` says that the query names a gold
    path or its basename.
    """

    task_id: str
    arm: str
    trial: int
    status: str
    evidence: str | None
    query: str
    date: str | None
    gold: tuple[str, ...]
    items: tuple[str, ...]
    first_gold: int | None
    score: float
    miss: str | None
    names_gold: bool
    reason: str | None


def list_answers(
    record: RunRecord,
    *,
    arm: str | None = None,
    task_id: str | None = None,
) -> list[AnswerRow]:
    """Every planned answer of a run, by task in panel order, then by arm as configured."""
    config = record.manifest.config
    arms = [found for found in config.arms if arm in (None, found.name)]
    tasks = [task for task in record.tasks if task_id is None or task.id.startswith(task_id)]
    if not arms:
        known = ", ".join(found.name for found in config.arms)
        raise UsageError(
            f"run {record.manifest.run_id} has no arm {arm!r}; it has {known} (nulls are "
            "computed, they have no answers)"
        )
    if not tasks:
        raise UsageError(
            f"run {record.manifest.run_id} has no task {task_id!r}; its {len(record.tasks)} tasks "
            f"have ids such as {record.tasks[0].id}"
        )
    captures = {(c.task_id, c.arm, c.trial): c for c in record.captures}
    return [
        _row(task, found, trial, captures.get((task.id, found.name, trial)), config)
        for task in tasks
        for found in arms
        for trial in range(record.manifest.trials[found.name])
    ]


def count_arm_misses(rows: Sequence[AnswerRow]) -> dict[str, dict[str, int]]:
    """The counts of miss classes by arm, in answers, the largest class first."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        counts = found.setdefault(row.arm, Counter())
        if row.miss is not None:
            counts[row.miss] += 1
    named = Counter(row.arm for row in rows if row.miss is not None and row.names_gold)
    return {
        arm: dict(counts.most_common()) | ({NAMES_GOLD: named[arm]} if named[arm] else {})
        for arm, counts in found.items()
    }


def _row(
    task: Task,
    arm: ArmConfig,
    trial: int,
    capture: Capture | None,
    config: Config,
) -> AnswerRow:
    measure = parse_measure(config.primary)
    answered = None
    if capture is not None:
        answered = read_answer(capture, arm, config.panel.answer_kind)
    items = () if answered is None else answered.items
    status = "missing" if capture is None else capture.reply.status
    if answered is not None and answered.is_infra:
        status = "infra"
    return AnswerRow(
        task_id=task.id,
        arm=arm.name,
        trial=trial,
        status=status,
        evidence=None if capture is None else capture.evidence,
        query=task.query,
        date=task.date,
        gold=task.shape,
        items=items,
        first_gold=find_first_rank(items, set(task.shape)),
        score=score_answer(answered, task, measure),
        miss=classify_miss(answered, task, measure),
        names_gold=names_gold(task),
        reason=capture.reply.reason if capture is not None else None,
    )


SOLVED = 0.5
"""A trial solves a task that it did not miss, or with this much of its score; a task is solved
when at least half of its trials solve it."""


def discriminate(rows: Sequence[AnswerRow]) -> Discrimination:
    """Sort the tasks of a run by which of its arms solved them."""
    solved: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        solved[row.arm][row.task_id].append(row.miss is None or row.score >= SOLVED)
    return describe_discrimination(
        {
            arm: {task: fmean(values) >= SOLVED for task, values in by_task.items()}
            for arm, by_task in solved.items()
        }
    )


def discrimination_values(rows: Sequence[AnswerRow]) -> dict[str, Any]:
    """The same as JSON values, with the smallest detectable effect."""
    found = discriminate(rows)
    return {**asdict(found), "mde_tasks": minimum_detectable_effect(found.tasks)}
