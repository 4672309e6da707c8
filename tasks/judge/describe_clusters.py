"""The primary measure where tasks come in clusters, such as repositories. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coldrun.tasks.judge.gate_model import (
    ClusteredDifference,
    ClusteredScore,
    ClustersPart,
    GatePart,
)
from coldrun.tasks.lib.arrays import FloatArray
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
