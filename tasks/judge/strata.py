"""A run split by stratum, and weighted back to the tasks that the sample was drawn from. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from coldrun.tasks.config import Config
from coldrun.tasks.freeze.population import estimate_production
from coldrun.tasks.freeze.split import UNDATED, task_instant
from coldrun.tasks.judge.report_model import (
    ArmPart,
    ClusteredDifference,
    ClusteredScore,
    ClustersPart,
    GatePart,
    ProductionPart,
    Report,
)
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.errors import PanelError, UsageError
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.lib.records import Task
from coldrun.tasks.stats.clusters import ClusteredMean, cluster_sign_flip_p, clustered_mean

UNMARKED = "unmarked"
"""The value of tasks that have no mark in a stratum."""


def describe_clusters(
    tasks: Sequence[Task],
    stratum: str | None,
    vectors: Mapping[str, FloatArray],
    gates: Sequence[GatePart],
    *,
    seed: int,
) -> ClustersPart | None:
    """Describe scores and differences by clusters; None where no task is marked with it."""
    if stratum is None or not any(stratum in task.strata for task in tasks):
        return None
    clusters = [task.strata.get(stratum, UNMARKED) for task in tasks]
    differences = []
    for gate in gates:
        for part in (*gate.against, *gate.compared):
            paired = vectors[gate.arm] - vectors[part.arm]
            found = clustered_mean(paired, clusters)
            low, high = _limits(found, -1.0)
            differences.append(
                ClusteredDifference(
                    arm=gate.arm,
                    against=part.arm,
                    difference=found.mean,
                    low=low,
                    high=high,
                    p=cluster_sign_flip_p(np.round(paired, 12), clusters, seed=seed),
                )
            )
    count = len(set(clusters))
    return ClustersPart(
        stratum=stratum,
        clusters=count,
        smallest_p=0.5**count,
        arms={name: _score(clustered_mean(vector, clusters)) for name, vector in vectors.items()},
        differences=differences,
    )


def _score(found: ClusteredMean) -> ClusteredScore:
    low, high = _limits(found, 0.0)
    effect = found.design_effect
    return ClusteredScore(
        value=found.mean,
        low=low,
        high=high,
        design_effect=effect,
        effective_tasks=found.n / effect if effect else None,
    )


def _limits(found: ClusteredMean, least: float) -> tuple[float | None, float | None]:
    if found.half_width is None:
        return None, None
    return max(least, found.mean - found.half_width), min(1.0, found.mean + found.half_width)


CUTOFF = "knowledge_cutoff"

Strata = dict[str, dict[str, dict[str, dict[str, float]]]]
"""Stratum → its value → arm → the primary measure, and `n`, the number of its tasks."""


def split_by_strata(
    tasks: Sequence[Task], config: Config, vectors: Mapping[str, FloatArray]
) -> Strata:
    """Every arm's primary measure in each part of every stratum; the parts add up to the panel.

    The strata are those that mining marked, and one for each date that an arm declares as its
    `knowledge_cutoff`: tasks up to that day may have been seen in training.
    """
    import polars as pl

    marks = pl.LazyFrame(
        [
            (stratum, part, place)
            for stratum, parts in _marks(tasks, config).items()
            for part, place in sorted(zip(parts, range(len(tasks)), strict=True))
        ],
        schema={"stratum": pl.String, "part": pl.String, "place": pl.Int64},
        orient="row",
    )
    columns = {f"{number}": vector for number, vector in enumerate(vectors.values())}
    scores = pl.LazyFrame({"place": range(len(tasks)), **columns})
    rows = (
        marks.join(scores, on="place", maintain_order="left")
        .group_by("stratum", "part", maintain_order=True)
        .agg(pl.len(), pl.col(*columns).mean())
        .collect()
    )
    found: Strata = {}
    for row in rows.iter_rows(named=True):
        found.setdefault(row["stratum"], {})[row["part"]] = {
            arm: {config.primary: row[column], "n": float(row["len"])}
            for arm, column in zip(vectors, columns, strict=True)
        }
    return found


def weight_to_production(
    tasks: Sequence[Task],
    vectors: Mapping[str, FloatArray],
    population: Mapping[str, Any] | None,
) -> dict[str, ProductionPart]:
    """Every arm's primary measure, weighted to the dev part that the sample was drawn from.

    Empty where the sample is all of it, so that the plain score says the same, and for panels
    whose lock keeps no population.
    """
    if not population or population["tasks"] <= len(tasks):
        return {}
    return {
        arm: _production(
            {task.id: float(value) for task, value in zip(tasks, values, strict=True)},
            tasks,
            population,
        )
        for arm, values in vectors.items()
    }


def strata_names(report: Report) -> list[str]:
    """What a report can be split by."""
    return sorted(report.strata)


def find_stratum(report: Report, name: str) -> str:
    """The stratum of that name, or the one whose name goes on after it: a date may be left out."""
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
    """The headers and rows of a report split by one stratum."""
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
    """What the table of a stratum shows."""
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


def _marks(tasks: Sequence[Task], config: Config) -> dict[str, list[str]]:
    names = dict.fromkeys(name for task in tasks for name in sorted(task.strata))
    marks = {name: [task.strata.get(name, UNMARKED) for task in tasks] for name in names}
    cutoffs = {arm.knowledge_cutoff for arm in config.arms if arm.knowledge_cutoff is not None}
    for cutoff in sorted(cutoffs):
        marks[f"{CUTOFF} {cutoff}"] = [_age(task, cutoff) for task in tasks]
    return marks


def _age(task: Task, cutoff: dt.date) -> str:
    try:
        instant = task_instant(task)
    except PanelError:
        return "undated"
    if instant == UNDATED:
        return "undated"
    return "older" if instant.date() <= cutoff else "newer"
