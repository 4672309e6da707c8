"""Why an answer scored nothing: one class per missed answer, so that the classes add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Miss:
    """A missed answer: its class, with the band of ranks for `below_cut` (such as "6-10")."""

    kind: str
    band: str | None = None

    @property
    def label(self) -> str:
        """The class as a key of counts: `below_cut_6_10`, `abstained`."""
        return self.kind if self.band is None else f"{self.kind}_{self.band.replace('-', '_')}"


def classify_miss(answered: Answered | None, task: Task, measure: Measure) -> Miss | None:
    """Say why an answer is a miss at a measure; None when it is none.

    A ranking misses when no gold item is within the cut-off; a set when it is not exactly the gold.
    """
    if answered is None:
        return Miss("missing")
    if answered.is_infra:
        return Miss("infra")
    gold = set(task.shape)
    if task.answer == "ranking":
        return _classify_ranking(answered.items, gold, measure.cutoff)
    return _classify_set(set(answered.items), gold)


def count_misses(misses: Iterable[tuple[Task, Miss | None]]) -> dict[str, int]:
    """Count the misses by label, in the order of the classes; `names_gold` comes last.

    The labels add up to the number of misses; `names_gold` counts some of them again.
    """
    counts: Counter[tuple[int, int, str]] = Counter()
    named = 0
    for task, miss in misses:
        if miss is not None:
            start = int(miss.band.partition("-")[0]) if miss.band else 0
            counts[MISS_CLASSES.index(miss.kind), start, miss.label] += 1
            named += names_gold(task)
    found = {label: counts[place, start, label] for place, start, label in sorted(counts)}
    return {**found, NAMES_GOLD: named} if named else found


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


def _classify_ranking(items: tuple[str, ...], gold: set[str], cutoff: int | None) -> Miss | None:
    if not gold:
        return Miss("unsolvable")
    if not items:
        return Miss("abstained")
    rank = find_first_rank(items, gold)
    if rank is None:
        return Miss("not_retrieved")
    if cutoff is None or rank <= cutoff:
        return None
    return Miss("below_cut", _band(rank, cutoff))


def _classify_set(items: set[str], gold: set[str]) -> Miss | None:
    if items == gold:
        return None
    if not items:
        return Miss("abstained")
    if items > gold:
        return Miss("too_many_items")
    return Miss("part_of_gold" if items & gold else "not_retrieved")


def _band(rank: int, cutoff: int) -> str:
    for times in (2, 4):
        if rank <= times * cutoff:
            return f"{times // 2 * cutoff + 1}-{times * cutoff}"
    return f"{4 * cutoff + 1}-up"
