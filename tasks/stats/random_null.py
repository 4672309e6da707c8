"""The random null, by expectation over all random answers and never one draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from math import comb, log2

from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.gold_table import require_gold
from coldrun.tasks.stats.measures import Measure


def random_scores(
    tasks: Sequence[Task], measure: Measure, *, k: int, items: Sequence[str]
) -> tuple[float, ...]:
    """Give each task's expected score of a random answer.

    For rankings: the first `k` of a uniformly random order of the corpus items. For sets: a size
    drawn from the sizes of the panel's gold sets, then a uniformly random set of so many items.
    Gold items outside the corpus are never found.

    Args:
        tasks: The panel, all of one answer kind.
        measure: What to score.
        k: Length of a ranking; unused for sets.
        items: Every item of the corpus.

    Returns:
        Expected scores in [0, 1], in the order of `tasks`.

    Raises:
        PanelError: A task's gold is empty and the measure is one of rankings.
    """
    require_gold(tasks, measure)
    corpus = frozenset(items)
    known = [sum(item in corpus for item in task.shape) for task in tasks]
    if all(task.answer == "ranking" for task in tasks):
        length = min(k, len(corpus))
        return tuple(
            _expect_ranking(measure, task.gold_grades, found, corpus, length)
            for task, found in zip(tasks, known, strict=True)
        )
    sizes = Counter(min(len(task.shape), len(corpus)) for task in tasks)
    cache: dict[tuple[int, int], float] = {}
    for task, found in zip(tasks, known, strict=True):
        key = (len(task.shape), found)
        if key not in cache:
            total = sum(
                count * _expect_set(measure.name, size, *key, len(corpus))
                for size, count in sizes.items()
            )
            cache[key] = total / len(tasks)
    return tuple(cache[len(task.shape), found] for task, found in zip(tasks, known, strict=True))


def expect_random_hit(*, items: int, gold: int, cutoff: int) -> float:
    """Give P(one of `gold` items is in the first `cutoff` of a random order of `items`)."""
    drawn = min(cutoff, items)
    return 1.0 - comb(items - gold, drawn) / comb(items, drawn)


def expect_random_reciprocal_rank(*, items: int, gold: int, cutoff: int) -> float:
    """Give the expected 1/rank of the first of `gold` items in a random order, 0 beyond the cut."""
    if gold == 0:
        return 0.0
    total, survival = 0.0, 1.0
    for rank in range(1, min(cutoff, items - gold + 1) + 1):
        share = gold / (items - rank + 1)
        total += survival * share / rank
        survival *= 1.0 - share
    return total


def _expect_ranking(
    measure: Measure,
    gold: Mapping[str, float],
    known: int,
    corpus: Collection[str],
    length: int,
) -> float:
    total = len(corpus)
    if total == 0 or length == 0:
        return 0.0
    cut = length if measure.cutoff is None else min(measure.cutoff, length)
    found = cut * known / total
    if measure.name == "ndcg":
        grade = sum(grade for item, grade in gold.items() if item in corpus) / total
        ideal = sorted(gold.values(), reverse=True)[: measure.cutoff]
        discounts = [1.0 / log2(rank + 1) for rank in range(1, max(cut, len(ideal)) + 1)]
        best = sum(value * discount for value, discount in zip(ideal, discounts, strict=False))
        return grade * sum(discounts[:cut]) / best
    formulas: dict[str, Callable[[], float]] = {
        "hit": lambda: expect_random_hit(items=total, gold=known, cutoff=cut),
        "mrr": lambda: expect_random_reciprocal_rank(items=total, gold=known, cutoff=cut),
        "precision": lambda: found / (measure.cutoff or cut),
        "recall": lambda: found / len(gold) if gold else 0.0,
        "f1": lambda: 2.0 * found / (cut + len(gold)),
    }
    return formulas[measure.name]()


def _expect_set(name: str, size: int, gold: int, known: int, total: int) -> float:
    """Give the expected score of a random set of `size` of `total` items, `known` of them gold."""
    if size == 0 or gold == 0:
        return float(size == gold)
    found = size * known / total
    if name == "precision":
        return found / size
    if name == "recall":
        return found / gold
    if name == "f1":
        return 2.0 * found / (size + gold)
    return 1.0 / comb(total, size) if size == gold == known else 0.0
