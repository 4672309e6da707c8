"""Latencies: quantiles of one arm, and the typical ratio of two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def quantile_seconds(seconds: Sequence[float], probability: float) -> float | None:
    """Give a quantile by linear interpolation, type 7; None without a value.

    Polars defaults to the nearest value, and DuckDB keeps the scale of a DECIMAL column.

    Source: Hyndman & Fan 1996, type 7; NumPy's default.
    """
    return float(np.quantile(seconds, probability)) if len(seconds) else None


def geometric_mean_ratio(seconds: Sequence[float], other_seconds: Sequence[float]) -> float | None:
    """Give exp of the mean log ratio over the same tasks: 2 means typically twice as slow.

    Returns:
        None without a task, or when a time is not positive, as a ratio is undefined then.

    Raises:
        ValueError: The lengths differ.
    """
    first = np.asarray(seconds, dtype=np.float64)
    second = np.asarray(other_seconds, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"paired latencies need the same tasks: {first.size}, {second.size}")
    if first.size == 0 or min(first.min(), second.min()) <= 0:
        return None
    return float(np.exp(np.mean(np.log(first / second))))
