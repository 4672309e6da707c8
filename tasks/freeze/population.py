"""What the lock keeps of the tasks that a sample was drawn from: enough to weight it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from coldrun.tasks.freeze.production import (
    ProductionEstimate,
    by_commonest_item,
    by_shape,
    weight_strata,
)
from coldrun.tasks.lib.records import Task


def describe_population(dev: Sequence[Task], sampled: Sequence[Task]) -> dict[str, Any]:
    """The sizes, in the dev part, of the strata that the sample reached.

    Returns:
        `tasks`: how many the sample was drawn from; `by`: "shape" for sets, "commonest-item" for
        rankings, whose shapes are mostly unique; `strata`: how many there are; `sizes`: by
        stratum; `items`: for "commonest-item", in how many tasks each gold item of the sample is.
    """
    is_ranking = any(task.answer == "ranking" for task in sampled)
    stratify = by_commonest_item(dev) if is_ranking else by_shape
    sizes = Counter(stratify(task) for task in dev)
    items = Counter(item for task in dev for item in task.shape)
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
    """Weight the sample's scores by the sizes that the lock keeps.

    Args:
        scores_by_task: A score between 0 and 1 for every task of the sample, by id.
        sample: The tasks that were asked.
        population: What `describe_population` returned when the sample was drawn.

    Raises:
        ValueError: The sample is empty.
    """
    if not sample:
        raise ValueError("an empty sample says nothing about production")
    counts = population["items"]

    def stratify(task: Task) -> str:
        if population["by"] == "shape":
            return by_shape(task)
        return min(task.shape, key=lambda item: (-counts.get(item, 0), item), default="")

    scores: dict[str, list[float]] = {}
    for task in sorted(sample, key=lambda task: task.id):
        scores.setdefault(stratify(task), []).append(scores_by_task[task.id])
    return weight_strata(
        scores, population["sizes"], tasks=population["tasks"], strata=population["strata"]
    )
