"""A run split by stratum, and weighted back to the tasks that the sample was drawn from. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

import numpy as np

from coldrun.tasks.config import Config
from coldrun.tasks.freeze.sample import UNDATED, task_instant
from coldrun.tasks.judge.report_model import (
    ClusteredDifference,
    ClusteredScore,
    ClustersPart,
    GatePart,
)
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.errors import PanelError
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
