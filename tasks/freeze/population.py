"""From a sample back to all tasks: "how often is it right", besides "can it tell arms apart".

A balanced sample answers the second. Weighting its strata by their share of all tasks answers the
first, for the part of the tasks whose strata the sample reached. The lock keeps what that takes.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from coldrun.tasks.lib.records import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionEstimate:
    """What the sample says about all tasks.

    `estimate` is the weighted mean over the strata that the sample reached, which hold `coverage`
    of all tasks; `lowest` and `highest` count the rest as 0 and as 1, so with full coverage all
    three agree. `standard_error` is that of `estimate`, None when a reached stratum has a single
    sampled task and so shows no spread. All are rates between 0 and 1.
    """

    estimate: float
    standard_error: float | None
    lowest: float
    highest: float
    coverage: float


def describe_population(dev: Sequence[Task], sampled: Sequence[Task]) -> dict[str, Any]:
    """The sizes, in the dev part, of the strata that the sample reached.

    Returns:
        `tasks`: how many the sample was drawn from; `by`: "shape" for sets, "commonest-item" for
        rankings, whose shapes are mostly unique; `strata`: how many there are; `sizes`: by
        stratum; `items`: for "commonest-item", in how many tasks each gold item of the sample is.
    """
    is_ranking = any(task.answer == "ranking" for task in sampled)
    items = Counter(item for task in dev for item in task.shape)
    stratify = _stratify("commonest-item" if is_ranking else "shape", items)
    sizes = Counter(stratify(task) for task in dev)
    asked = {item for task in sampled for item in task.shape}
    return {
        "tasks": len(dev),
        "by": "commonest-item" if is_ranking else "shape",
        "strata": len(sizes),
        "sizes": {name: sizes[name] for name in sorted({stratify(task) for task in sampled})},
        "items": {item: items[item] for item in sorted(asked)} if is_ranking else {},
    }


def estimate_production(
    scores_by_task: Mapping[str, float], sample: Sequence[Task], population: Mapping[str, Any]
) -> ProductionEstimate:
    """Weight the sample's scores by the share of each stratum in the dev part.

    Scores are between 0 and 1; `population` is what `describe_population` returned.

    Source:
        Cochran 1977, Sampling Techniques, chapter 5 (without finite population correction).
    """
    if not sample:
        raise ValueError("an empty sample says nothing about production")
    stratify = _stratify(population["by"], population["items"])
    scores: dict[str, list[float]] = {}
    for task in sorted(sample, key=lambda task: task.id):
        scores.setdefault(stratify(task), []).append(scores_by_task[task.id])
    covered = sum(population["sizes"][stratum] for stratum in scores)
    weights = {stratum: population["sizes"][stratum] / covered for stratum in scores}
    coverage = covered / population["tasks"]
    estimate = math.fsum(weights[stratum] * fmean(values) for stratum, values in scores.items())
    error = None
    if all(len(values) > 1 for values in scores.values()):
        error = math.sqrt(
            math.fsum(
                weights[stratum] ** 2 * variance(values) / len(values)
                for stratum, values in scores.items()
            )
        )
    return ProductionEstimate(
        estimate=estimate,
        standard_error=error,
        lowest=coverage * estimate,
        highest=coverage * estimate + (1 - coverage),
        coverage=coverage,
    )


def _stratify(by: str, items: Mapping[str, int]) -> Callable[[Task], str]:
    """Names a task's stratum: its answer shape, or the item of its gold that most tasks share.

    A shape is the JSON of its items, so that no item's name can forge a join. Equally common items
    go by name; a task without gold belongs to the empty stratum.
    """
    if by == "shape":
        return lambda task: json.dumps(task.shape, ensure_ascii=False)
    return lambda task: min(task.shape, key=lambda item: (-items.get(item, 0), item), default="")
