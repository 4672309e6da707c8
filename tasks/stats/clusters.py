"""Tasks that belong together: repositories, and trials of one task.

With G repositories a sign flip of whole repositories cannot go below 2^-G, so four can never
reach 0.05. Under about ten repositories: report each, pool with the stratified sign test
(`tasks.stats.paired.stratified_paired_p`), and say that they are fixed, not sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from coldrun.tasks.stats.bootstrap import resample_means
from coldrun.tasks.stats.paired import sign_flip_p

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredMean:
    """A mean over tasks with standard errors of several kinds.

    `se_plain` takes tasks as independent. `se_cr1` (with Student's t on clusters - 1 degrees of
    freedom, `half_width`) is the one to print; `se_miller` and `se_cr0` are for comparison. The
    clustered ones are None with a single cluster.
    """

    mean: float
    clusters: int
    se_plain: float | None
    se_miller: float | None
    se_cr0: float | None
    se_cr1: float | None
    half_width: float | None


def clustered_mean(
    values: Sequence[float] | FloatArray, clusters: Sequence[object], *, confidence: float = 0.95
) -> ClusteredMean:
    """Give the mean with errors that allow for correlation within clusters.

    Args:
        values: Shape (tasks,): scores, or differences of two arms.
        clusters: The cluster of each task, any hashable labels.

    Raises:
        ValueError: There is no task, or not one label per task.

    Source: Miller 2024 (arXiv:2411.00640): SE² = SE²_plain + n⁻² Σ_c Σ_{i≠j in c} e_i e_j;
    Cameron, Gelbach & Miller 2008 for few clusters.
    """
    data = np.asarray(values, dtype=np.float64)
    n = data.size
    if n == 0 or n != len(clusters):
        raise ValueError(f"every task needs a cluster: {n} values, {len(clusters)} labels")
    deviations = data - data.mean()
    sums = _sum_by_cluster(deviations, clusters)
    count = len(sums)
    plain = float(deviations @ deviations) / (n * (n - 1)) if n > 1 else None
    if plain is None or count < 2:
        return ClusteredMean(
            mean=float(data.mean()),
            clusters=count,
            se_plain=None if plain is None else sqrt(plain),
            se_miller=None,
            se_cr0=None,
            se_cr1=None,
            half_width=None,
        )
    squares = float(sums @ sums)
    within_pairs = squares - float(deviations @ deviations)
    cr1 = sqrt(squares * count / (count - 1)) / n
    t = float(scipy.special.stdtrit(count - 1, 1 - (1 - confidence) / 2))
    return ClusteredMean(
        mean=float(data.mean()),
        clusters=count,
        se_plain=sqrt(plain),
        se_miller=sqrt(max(0.0, plain + within_pairs / n**2)),
        se_cr0=sqrt(squares) / n,
        se_cr1=cr1,
        half_width=t * cr1,
    )


def cluster_sign_flip_p(
    differences: Sequence[float] | FloatArray, clusters: Sequence[object], *, seed: int
) -> float:
    """Give the one-sided p of flipping whole clusters; never below 2^-clusters."""
    return sign_flip_p(_sum_by_cluster(np.asarray(differences, float), clusters), seed=seed)


def smallest_cluster_p(clusters: int) -> float:
    """Give the smallest one-sided p that flipping so many clusters can reach."""
    return 0.5**clusters


def resample_clusters(
    clusters: Mapping[str, Sequence[float]], *, seed: int, resamples: int = 9999
) -> FloatArray:
    """Resample whole clusters with all their tasks, and take the mean over tasks each time.

    The mean is a ratio, because clusters differ in size: both sums are drawn together.

    Returns:
        Shape (resamples,); the whole distribution with at most 6 clusters.
    """
    columns = np.array([[sum(scores), len(scores)] for scores in clusters.values()], float)
    means = resample_means(columns, seed=seed, resamples=resamples)
    ratios: FloatArray = means[:, 0] / means[:, 1]
    return ratios


def effective_tasks(n: int, *, cluster_size: float, correlation: float) -> float:
    """Give how many independent tasks n clustered ones are worth: n/(1 + (m-1)ρ).

    Source: Kish's design effect, clusters of equal size.
    """
    return n / (1 + (cluster_size - 1) * correlation)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialVariance:
    """The mean over tasks of trial means, and where its variance comes from.

    `standard_error` is that of the n task means, the one to print. `within` is the variance of a
    trial around its task, `between` that of the tasks' true scores (unbiased, may be negative);
    `standard_error_one_trial` is what a single trial per task would give.
    """

    mean: float
    standard_error: float
    within: float
    between: float
    standard_error_one_trial: float


def describe_trials(outcomes: Sequence[Sequence[float]] | FloatArray) -> TrialVariance:
    """Average trials to one number a task and analyse n tasks, never n × K rows.

    Args:
        outcomes: Shape (tasks, trials), at least two of each.

    Raises:
        ValueError: There are fewer than two tasks or trials.

    Source: Miller 2024 (arXiv:2411.00640): Var(mean) = (between + within/K)/n.
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError(f"trials need at least two tasks with two trials, got {table.shape}")
    n, trials = table.shape
    means = table.mean(axis=1)
    within = float(table.var(axis=1, ddof=1).mean())
    spread = float(means.var(ddof=1))
    between = spread - within / trials
    return TrialVariance(
        mean=float(means.mean()),
        standard_error=sqrt(spread / n),
        within=within,
        between=between,
        standard_error_one_trial=sqrt(max(0.0, between + within) / n),
    )


def _sum_by_cluster(values: FloatArray, clusters: Sequence[object]) -> FloatArray:
    places: dict[object, int] = {}
    labels = [places.setdefault(cluster, len(places)) for cluster in clusters]
    sums: FloatArray = np.zeros(len(places))
    np.add.at(sums, labels, values)
    return sums
