"""A run split by stratum, and weighted back to the tasks that the sample was drawn from. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coldrun.tasks.config import Config
from coldrun.tasks.freeze.population import estimate_production
from coldrun.tasks.freeze.split import UNDATED, task_instant
from coldrun.tasks.judge.report_model import ArmPart, ProductionPart, Report
from coldrun.tasks.lib.errors import PanelError, UsageError
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.lib.records import Task

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

UNMARKED = "unmarked"
CUTOFF = "knowledge_cutoff"

Strata = dict[str, dict[str, dict[str, dict[str, float]]]]
"""Stratum → its value → arm → the primary measure, and `n`, the number of its tasks."""


def split_by_strata(
    tasks: Sequence[Task],
    config: Config,
    scores: pl.DataFrame,
    nulls: Mapping[str, Sequence[float] | NDArray[np.float64]],
) -> Strata:
    """Every arm's primary measure in each part of every stratum; the parts add up to the panel.

    The nulls come first, each the same answers as over the whole panel: `nulls` has their scores
    by name, in the order of `tasks`.

    The strata are those that mining marked, and one for each date that an arm declares as its
    `knowledge_cutoff`: tasks up to that day may have been seen in training.
    """
    ids = [task.id for task in tasks]
    means = {
        name: {task_id: float(value) for task_id, value in zip(ids, values, strict=True)}
        for name, values in nulls.items()
    } | _task_means(scores, config.primary)
    found: Strata = {}
    for stratum, marks in _marks(tasks, config).items():
        members: dict[str, list[str]] = {}
        for task_id, value in marks.items():
            members.setdefault(value, []).append(task_id)
        found[stratum] = {
            value: {
                arm: {
                    config.primary: sum(by_task[task_id] for task_id in inside) / len(inside),
                    "n": float(len(inside)),
                }
                for arm, by_task in means.items()
            }
            for value, inside in sorted(members.items())
        }
    return found


def weight_to_production(
    tasks: Sequence[Task],
    config: Config,
    scores: pl.DataFrame,
    population: Mapping[str, Any] | None,
) -> dict[str, ProductionPart]:
    """Every arm's primary measure, weighted to the dev part that the sample was drawn from.

    Empty where the sample is all of it, so that the plain score says the same, and for panels
    whose lock keeps no population.
    """
    if not population or population["tasks"] <= len(tasks):
        return {}
    return {
        arm: _production(by_task, tasks, population)
        for arm, by_task in _task_means(scores, config.primary).items()
    }


def strata_names(report: Report) -> list[str]:
    """What a report can be split by."""
    return sorted(report.strata)


def find_stratum(report: Report, name: str) -> str:
    """The stratum of that name, or the one whose name goes on after it: a date may be left out.

    Raises:
        UsageError: None or several fit.
    """
    fitting = [found for found in strata_names(report) if f"{found} ".startswith(f"{name} ")]
    if name in fitting:
        return name
    if len(fitting) > 1:
        raise UsageError(f"{name!r} is the start of several strata: {', '.join(fitting)}; name one")
    if not fitting:
        known = ", ".join(strata_names(report)) or "none: its tasks are not marked"
        raise UsageError(f"run {report.run_id} has no stratum {name!r}; it has {known}")
    return fitting[0]


def stratum_table(report: Report, stratum: str) -> tuple[list[str], list[list[str]]]:
    """The headers and rows of a report split by one stratum.

    Raises:
        UsageError: The run has no such stratum.
    """
    stratum = find_stratum(report, stratum)
    parts = report.strata[stratum]
    withheld = {arm.name for arm in report.arms if arm.is_withheld}
    arms = [arm.name for arm in report.arms]
    rows = []
    for value, by_arm in parts.items():
        tasks = next(iter(by_arm.values()))["n"]
        cells = [
            "withheld" if arm in withheld else f"{by_arm[arm][report.primary]:.3f}" for arm in arms
        ]
        rows.append([value, f"{tasks:.0f}", *cells])
    return [stratum, "tasks", *arms], rows


def stratum_line(report: Report, stratum: str) -> str:
    """What the table of a stratum shows.

    Raises:
        UsageError: The run has no such stratum.
    """
    return (
        f"{report.primary} by {find_stratum(report, stratum)}, "
        f"{counted(report.counts.tasks, 'task')}; the "
        "nulls come first, each with the answers that it gives on the whole panel:"
    )


def production_lines(report: Report) -> Iterator[str]:
    """Both questions answered, one line per arm whose score is not withheld, after the nulls."""
    if report.evidence in ("invalid", "incomplete"):
        return
    shown = [arm for arm in report.arms if arm.name in report.production and not arm.is_withheld]
    if shown:
        yield from _null_lines(report)
    for arm in shown:
        yield _production_line(report, arm, report.production[arm.name])


def _production_line(report: Report, arm: ArmPart, part: ProductionPart) -> str:
    balanced = arm.measures[report.primary].value
    spread = "" if part.standard_error is None else f" ± {1.96 * part.standard_error:.3f}"
    rest = ""
    if part.coverage < 1:
        rest = (
            f", over the {part.coverage:.0%} whose strata were asked; with the rest between "
            f"{part.lowest:.3f} and {part.highest:.3f}"
        )
    return (
        f"{arm.name}, {report.primary}: for telling systems apart {balanced:.3f} (the sample); "
        f"for production {part.estimate:.3f}{spread} (weighted to "
        f"{counted(part.tasks, 'dev task')}{rest})"
    )


def _null_lines(report: Report) -> Iterator[str]:
    """What the nulls score on all that the sample was drawn from, best first; none for older
    locks.
    """
    sizes = {part.tasks for part in report.production.values()}
    if not report.production_nulls or len(sizes) != 1:
        return
    ranked = sorted(report.production_nulls.items(), key=lambda null: (-null[1], null[0]))
    scores = ", ".join(f"{name} {value:.3f}" for name, value in ranked)
    yield f"nulls, {report.primary}: for production {scores} ({counted(sizes.pop(), 'dev task')})"


def _production(
    by_task: Mapping[str, float], tasks: Sequence[Task], population: Mapping[str, Any]
) -> ProductionPart:
    found = estimate_production(by_task, tasks, population)
    return ProductionPart(
        tasks=population["tasks"],
        estimate=found.estimate,
        standard_error=found.standard_error,
        lowest=found.lowest,
        highest=found.highest,
        coverage=found.coverage,
    )


def _task_means(scores: pl.DataFrame, measure: str) -> dict[str, dict[str, float]]:
    """The scores by arm and task."""
    import polars as pl

    found: dict[str, dict[str, float]] = {}
    chosen = scores.filter(pl.col("measure") == measure)
    for arm, task_id, value in chosen.select("arm", "task_id", "value").iter_rows():
        found.setdefault(arm, {})[task_id] = value
    return found


def _marks(tasks: Sequence[Task], config: Config) -> dict[str, dict[str, str]]:
    """Stratum → task → its value there."""
    names = dict.fromkeys(name for task in tasks for name in sorted(task.strata))
    marks = {name: {task.id: task.strata.get(name, UNMARKED) for task in tasks} for name in names}
    cutoffs = {arm.knowledge_cutoff for arm in config.arms if arm.knowledge_cutoff is not None}
    for cutoff in sorted(cutoffs):
        marks[f"{CUTOFF} {cutoff}"] = {task.id: _age(task, cutoff) for task in tasks}
    return marks


def _age(task: Task, cutoff: dt.date) -> str:
    try:
        instant = task_instant(task)
    except PanelError:
        return "undated"
    if instant == UNDATED:
        return "undated"
    return "older" if instant.date() <= cutoff else "newer"
