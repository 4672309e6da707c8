"""What the lock says of the tasks that a sample was drawn from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coldrun.tasks.lib.records import Task


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


def _stratify(by: str, items: Mapping[str, int]) -> Callable[[Task], str]:
    """Names a task's stratum: its answer shape, or the item of its gold that most tasks share.

    A shape is the JSON of its items, so that no item's name can forge a join. Equally common items
    go by name; a task without gold belongs to the empty stratum.
    """
    if by == "shape":
        return lambda task: json.dumps(task.shape, ensure_ascii=False)
    return lambda task: min(task.shape, key=lambda item: (-items.get(item, 0), item), default="")
