"""The other question: not "can it tell cases apart" but "how often is it right".

A balanced sample answers the first. Weighting its strata by their share of all tasks answers the
second, for the part of the tasks whose strata the sample reached.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coldrun.tasks.lib.records import Task

Stratify = Callable[[Task], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingStratum:
    """A stratum with tasks, none of which is in the sample; `share` is of all tasks."""

    stratum: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionEstimate:
    """What the sample says about all tasks.

    `estimate` is the weighted mean over the strata that the sample reached, which hold `coverage`
    of all tasks; `lowest` and `highest` count the rest as 0 and as 1, so with full coverage all
    three agree. `standard_error` is that of `estimate`, None when a reached stratum has a single
    sampled task and so shows no spread. All are rates between 0 and 1.
    """

    sample_mean: float
    estimate: float
    standard_error: float | None
    lowest: float
    highest: float
    coverage: float
    strata: int
    missing: tuple[MissingStratum, ...]


def post_stratified(
    scores_by_task: Mapping[str, float],
    sample: Sequence[Task],
    population: Sequence[Task],
    *,
    stratify: Stratify | None = None,
) -> ProductionEstimate:
    """Weight the sample's scores by the share of each stratum in the population.

    Args:
        scores_by_task: A score between 0 and 1 for every task of the sample, by id.
        sample: The tasks that were asked; each is one of the population.
        population: The tasks that the sample was drawn from.
        stratify: Names a task's stratum; the answer shape when left out. For rankings, whose
            shapes are mostly unique, `by_commonest_item(population)` reaches far more.

    Raises:
        ValueError: The sample is empty, is not part of the population, or lacks a score.

    Source:
        Cochran 1977, Sampling Techniques, chapter 5 (without finite population correction).
    """
    stratify = stratify or by_shape
    _check_sample(scores_by_task, sample, population)
    sizes = Counter(stratify(task) for task in population)
    scores: dict[str, list[float]] = {}
    for task in sorted(sample, key=lambda task: task.id):
        scores.setdefault(stratify(task), []).append(scores_by_task[task.id])
    missing = tuple(
        MissingStratum(stratum=stratum, share=size / len(population))
        for stratum, size in sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))
        if stratum not in scores
    )
    return weight_strata(scores, sizes, tasks=len(population), strata=len(sizes), missing=missing)


def weight_strata(
    scores: Mapping[str, Sequence[float]],
    sizes: Mapping[str, int],
    *,
    tasks: int,
    strata: int,
    missing: tuple[MissingStratum, ...] = (),
) -> ProductionEstimate:
    """Weight the scores of each stratum that the sample reached by its size.

    Args:
        scores: The sample's scores by stratum; at least one.
        sizes: How many of all tasks each of these strata has.
        tasks: How many tasks there are in all.
        strata: How many strata there are in all.
        missing: The strata that the sample did not reach, where they are known by name.
    """
    covered = sum(sizes[stratum] for stratum in scores)
    weights = {stratum: sizes[stratum] / covered for stratum in scores}
    coverage = covered / tasks
    estimate = math.fsum(weights[stratum] * _mean(values) for stratum, values in scores.items())
    return ProductionEstimate(
        sample_mean=_mean([value for values in scores.values() for value in values]),
        estimate=estimate,
        standard_error=_standard_error(weights, scores),
        lowest=coverage * estimate,
        highest=coverage * estimate + (1 - coverage),
        coverage=coverage,
        strata=strata,
        missing=missing,
    )


def by_shape(task: Task) -> str:
    """The answer shape as the JSON of its sorted items: no item's name can forge a join."""
    return json.dumps(task.shape, ensure_ascii=False)


def by_commonest_item(population: Sequence[Task]) -> Stratify:
    """Strata for rankings: a task belongs to that item of its gold that most tasks share.

    Equally common items go by name. A task without gold belongs to the empty stratum.
    """
    counts = Counter(item for task in population for item in task.shape)

    def stratify(task: Task) -> str:
        return min(task.shape, key=lambda item: (-counts[item], item), default="")

    return stratify


def _standard_error(
    weights: Mapping[str, float], scores: Mapping[str, Sequence[float]]
) -> float | None:
    if any(len(values) < 2 for values in scores.values()):
        return None
    return math.sqrt(
        math.fsum(
            weights[stratum] ** 2 * _sample_variance(values) / len(values)
            for stratum, values in scores.items()
        )
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _sample_variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _check_sample(
    scores_by_task: Mapping[str, float], sample: Sequence[Task], population: Sequence[Task]
) -> None:
    if not sample:
        raise ValueError("an empty sample says nothing about production")
    known = {task.id for task in population}
    for task in sample:
        if task.id not in known:
            raise ValueError(f"task {task.id!r} is in the sample but not in the population")
        if task.id not in scores_by_task:
            raise ValueError(f"task {task.id!r} of the sample has no score; a miss scores 0")
