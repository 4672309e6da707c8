"""Why an answer scored nothing: one class per missed answer, so that the classes add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from coldrun.tasks.judge.score_table import Answered, ArmAnswers
from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.measures import Measure, parse_measure
from coldrun.tasks.stats.measures.definition import find_first_rank

MISS_CLASSES = (
    "missing",
    "infra",
    "unsolvable",
    "abstained",
    "below_cut",
    "not_retrieved",
    "part_of_gold",
    "too_many_items",
)
"""In this order, the first that holds: no answer is there; the tool itself failed; no answer could
score; nothing was answered; for rankings, the first gold item is below the cut-off (by band) or
not there at all; for sets, no gold item is there, or some of them, or all of them and more."""

NAMES_GOLD = "names_gold"
"""Counted beside the classes: misses whose query names a gold path or its basename."""


def classify_miss(answered: Answered | None, task: Task, measure: Measure) -> str | None:
    """Give the class of a miss at a measure, as a key of counts; None for a hit.

    A ranking misses when no gold item is within the cut-off; a set when it is not exactly the gold.
    """
    if answered is None:
        return "missing"
    if answered.is_infra:
        return "infra"
    gold = set(task.shape)
    if task.answer == "ranking":
        return _classify_ranking(answered.items, gold, measure.cutoff)
    return _classify_set(set(answered.items), gold)


def count_misses(misses: Iterable[tuple[Task, str | None]]) -> dict[str, int]:
    """Count the misses by label, in the order of the classes; `names_gold` comes last.

    The labels add up to the number of misses; `names_gold` counts some of them again.
    """
    missed = [(task, miss) for task, miss in misses if miss is not None]
    counts = Counter(miss for _, miss in missed)
    named = sum(names_gold(task) for task, _ in missed)
    found = {miss: counts[miss] for miss in sorted(counts, key=_place)}
    return {**found, NAMES_GOLD: named} if named else found


def _place(miss: str) -> tuple[int, int]:
    kind = next(kind for kind in MISS_CLASSES if miss.startswith(kind))
    return MISS_CLASSES.index(kind), int(miss.split("_")[2]) if kind == "below_cut" else 0


def misses_of_arm(arm: ArmAnswers, tasks: Sequence[Task], *, primary: str) -> dict[str, int]:
    """The counts of one arm's miss classes at the primary measure, in answers."""
    measure = parse_measure(primary)
    return count_misses(
        (task, classify_miss(answered, task, measure))
        for task in tasks
        for answered in arm.trials_of(task.id)
    )


def names_gold(task: Task) -> bool:
    """Whether the query names a gold path or its basename; False for tasks that are not marked."""
    return task.strata.get("names_gold", "no") != "no"


def _classify_ranking(items: tuple[str, ...], gold: set[str], cutoff: int | None) -> str | None:
    if not gold:
        return "unsolvable"
    if not items:
        return "abstained"
    rank = find_first_rank(items, gold)
    if rank is None:
        return "not_retrieved"
    if cutoff is None or rank <= cutoff:
        return None
    for times in (2, 4):
        if rank <= times * cutoff:
            return f"below_cut_{times // 2 * cutoff + 1}_{times * cutoff}"
    return f"below_cut_{4 * cutoff + 1}_up"


def _classify_set(items: set[str], gold: set[str]) -> str | None:
    if items == gold:
        return None
    if not items:
        return "abstained"
    if items > gold:
        return "too_many_items"
    return "part_of_gold" if items & gold else "not_retrieved"
