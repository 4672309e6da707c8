"""Counts of tokens in units of text, kept in sorted segments that grow by merging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MERGE_BELOW = 3
"""A part less than this many times as large as the next is merged with it, so that there are few of
them and each entry moves few times."""

Found = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Units and counts, to be added up: a unit may be there twice."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Entries (token, unit, count), sorted by token. A count below zero is a change."""

    tokens: NDArray[Any]
    units: NDArray[np.int32]
    counts: NDArray[np.int32]

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.tokens.size

    def find(self, tokens: NDArray[Any]) -> Found:
        """The entries of some tokens; those of a token that is named twice come twice."""
        starts = np.searchsorted(self.tokens, tokens, side="left")
        sizes = np.searchsorted(self.tokens, tokens, side="right") - starts
        entries = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        return self.units[entries], self.counts[entries]


def find_all(segments: tuple[Segment, ...], tokens: NDArray[Any]) -> Found:
    """The entries of some tokens in several segments."""
    found = [segment.find(tokens) for segment in segments]
    if not found:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    return np.concatenate([units for units, _ in found]), np.concatenate([n for _, n in found])


def add_segment(segments: list[Segment], new: Segment) -> None:
    """Append a segment of unsorted entries, and merge what has become too small."""
    segments.append(_sort(new))
    while is_too_small([segment.size for segment in segments[-2:]]):
        first, second = segments[-2:]
        both = Segment(
            np.concatenate([first.tokens, second.tokens]),
            np.concatenate([first.units, second.units]),
            np.concatenate([first.counts, second.counts]),
        )
        segments[-2:] = [_sort(both)]


def is_too_small(sizes: list[int]) -> bool:
    """Whether the last two parts of a growing row are to be merged."""
    return len(sizes) > 1 and sizes[-2] < MERGE_BELOW * sizes[-1]


def _sort(segment: Segment) -> Segment:
    order = np.argsort(segment.tokens, kind="stable")
    return Segment(segment.tokens[order], segment.units[order], segment.counts[order])
