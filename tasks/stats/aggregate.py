"""From scores of tasks to one number, with nothing dropped on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum


def mean_score(scores: Mapping[str, float | None], tasks: Sequence[str]) -> float | None:
    """Average over all tasks asked; a missing or failed one counts 0 and stays in n.

    SQL's AVG and Polars' mean skip NULLs, which shrinks the denominator.

    Args:
        scores: By task id; None for a task that failed.
        tasks: Ids of all tasks that were asked.

    Returns:
        None when no task was asked.
    """
    if not tasks:
        return None
    return fsum(scores.get(task) or 0.0 for task in tasks) / len(tasks)


def mean_of_trials(trials: Iterable[float | None]) -> float:
    """Average the trials of one task, failed ones as 0; the task is the unit of all that follows.

    Raises:
        ValueError: There is no trial.
    """
    values = [0.0 if trial is None else trial for trial in trials]
    if not values:
        raise ValueError("a task needs at least one trial; score a missing one as None")
    return fsum(values) / len(values)
