"""Latencies: quantiles of one arm, and how two arms differ on the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.stats.bootstrap import RESAMPLES, iterate_draws, percentile_limits
from coldrun.tasks.stats.intervals import Interval, mean_interval

QUANTILES = (0.5, 0.95)


def quantile_seconds(seconds: Sequence[float], probability: float) -> float | None:
    """Give a quantile by linear interpolation, type 7; None without a value.

    Polars defaults to the nearest value, and DuckDB keeps the scale of a DECIMAL column.

    Source: Hyndman & Fan 1996, type 7; NumPy's default.
    """
    return float(np.quantile(seconds, probability)) if len(seconds) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyDifference:
    """Seconds per task of two arms on the same tasks, first minus second, with 95 % intervals.

    `ratio` is the geometric mean of the tasks' ratios: 2 means typically twice as slow. It and its
    interval are None where a time is not positive.
    """

    p50: float
    p50_interval: Interval
    p95: float
    p95_interval: Interval
    ratio: float | None
    ratio_interval: Interval | None


def compare_latency(first: FloatArray, second: FloatArray, *, seed: int) -> LatencyDifference:
    """Compare the latencies of two arms; tasks are drawn once for both."""
    if first.shape != second.shape or first.size == 0:
        raise ValueError(f"paired latencies need the same tasks: {first.size}, {second.size}")
    p50, p95 = np.quantile(first, QUANTILES) - np.quantile(second, QUANTILES)
    resampled = np.concatenate(
        [
            np.quantile(first[drawn], QUANTILES, axis=1)
            - np.quantile(second[drawn], QUANTILES, axis=1)
            for drawn in iterate_draws(first.size, seed=seed, resamples=RESAMPLES)
        ],
        axis=1,
    )
    ratio = ratio_interval = None
    if min(first.min(), second.min()) > 0:
        logs = np.log(first / second)
        limits = mean_interval(logs, seed)
        ratio = float(np.exp(logs.mean()))
        ratio_interval = Interval(float(np.exp(limits.low)), float(np.exp(limits.high)))
    return LatencyDifference(
        p50=float(p50),
        p50_interval=Interval(*percentile_limits(resampled[0])),
        p95=float(p95),
        p95_interval=Interval(*percentile_limits(resampled[1])),
        ratio=ratio,
        ratio_interval=ratio_interval,
    )
