"""Tasks that belong together, such as those of one repository: they are not independent.

With G clusters a sign flip of whole clusters cannot go below 2^-G, so four can never reach 0.05.
Clusters are taken as sampled from many; under about ten of them the intervals are rough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.stats.paired import sign_flip_p


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredMean:
    """A mean over tasks whose error allows for correlation within clusters.

    `se_plain` takes tasks as independent; `se_clustered` is CR1, None with a single cluster.
    `half_width` is that of the interval, by Student's t on clusters - 1 degrees of freedom.
    """

    n: int
    clusters: int
    mean: float
    se_plain: float | None
    se_clustered: float | None
    half_width: float | None

    @property
    def design_effect(self) -> float | None:
        """The clustered variance over the plain one; None where either is unknown or 0."""
        if not self.se_plain or not self.se_clustered:
            return None
        return (self.se_clustered / self.se_plain) ** 2


def clustered_mean(
    values: FloatArray, clusters: Sequence[str], *, confidence: float = 0.95
) -> ClusteredMean:
    """Give the mean with an error that allows for correlation within clusters.

    Source: Cameron, Gelbach & Miller 2008 for CR1 and t with few clusters; Miller 2024
    (arXiv:2411.00640) on clustered questions.
    """
    n = values.size
    if n == 0 or n != len(clusters):
        raise ValueError(f"every task needs a cluster: {n} values, {len(clusters)} labels")
    deviations = values - values.mean()
    sums = _sum_by_cluster(deviations, clusters)
    count = len(sums)
    se_clustered = half_width = None
    if count > 1:
        se_clustered = sqrt(float(sums @ sums) * count / (count - 1)) / n
        t = float(scipy.special.stdtrit(count - 1, 1 - (1 - confidence) / 2))
        half_width = t * se_clustered
    return ClusteredMean(
        n=n,
        clusters=count,
        mean=float(values.mean()),
        se_plain=sqrt(float(deviations @ deviations) / (n * (n - 1))) if n > 1 else None,
        se_clustered=se_clustered,
        half_width=half_width,
    )


def cluster_sign_flip_p(differences: FloatArray, clusters: Sequence[str], *, seed: int) -> float:
    """Give the one-sided p of flipping whole clusters; never below 2^-clusters."""
    return sign_flip_p(_sum_by_cluster(differences, clusters), seed=seed)


def _sum_by_cluster(values: FloatArray, clusters: Sequence[str]) -> FloatArray:
    _, labels = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    return np.asarray(np.bincount(labels, weights=values), dtype=np.float64)
