"""Random sign flips of tasks, shared by every permutation test.

Flips are kept packed, eight tasks a byte. The sum of a resample is then looked up eight tasks at a
time, which takes 2,000 tasks and 9,999 resamples in a few hundredths of a second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
PackedFlips = NDArray[np.uint8]

EXHAUSTIVE_TASKS = 13
"""Up to this many tasks all sign vectors are tried: 2^13 = 8,192 is below the usual 9,999."""


def draw_flips(tasks: int, *, seed: int, resamples: int) -> PackedFlips:
    """Draw which tasks change sign in each resample.

    Returns:
        Shape (rows, ceil(tasks / 8)), little-endian bits; all 2^tasks rows when there are at most
        13 tasks, else `resamples` random ones.
    """
    width = (tasks + 7) // 8
    if tasks <= EXHAUSTIVE_TASKS:
        codes = np.arange(2**tasks, dtype="<u2")
        return np.ascontiguousarray(codes.view(np.uint8).reshape(-1, 2)[:, :width])
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, size=(resamples, width), dtype=np.uint8)


def sum_flipped(values: FloatArray, flips: PackedFlips) -> FloatArray:
    """Sum the values with the signs of each resample.

    Args:
        values: Shape (tasks,).
        flips: Of `draw_flips` for as many tasks.

    Returns:
        Shape (rows,).
    """
    groups = flips.shape[1]
    padded = np.zeros(groups * 8)
    padded[: values.size] = values
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    # what flipping takes away from the plain sum, per group of eight tasks and byte
    table = 2.0 * padded.reshape(groups, 8) @ bits.T.astype(np.float64)
    lookup = table.ravel()
    offsets = np.arange(groups, dtype=np.int32) * 256
    total = float(values.sum())
    sums = np.empty(len(flips))
    block = max(1, 2_000_000 // max(groups, 1))
    for start in range(0, len(flips), block):
        rows = flips[start : start + block]
        sums[start : start + block] = total - lookup[rows + offsets].sum(axis=1)
    return sums
