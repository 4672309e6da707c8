"""Counts of tokens in units of text, shared by all trees that a session searches.

A unit is a blob or a path. A tree is a list of units, so a tree that shares most of them with the
one before costs only what is new, and every search of every tree runs over the same counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MERGE_BELOW = 3
"""A part less than this many times as large as the next is merged with it, so that there are few of
them and each entry moves few times."""

MAXIMUM_ENTRIES = 20_000_000
"""Counts kept in memory (16 bytes each); beyond, all but the present tree is forgotten."""

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


def find_all(segments: Iterable[Segment], tokens: NDArray[Any]) -> Found:
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


@dataclass(slots=True)
class UnitCounts:
    """Numbered units, and what they hold. Unit 0, named "", holds nothing."""

    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})
    lengths: list[int] = field(default_factory=lambda: [0])
    segments: list[Segment] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether it is time to start again."""
        return sum(segment.size for segment in self.segments) > MAXIMUM_ENTRIES

    def add(self, new: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]) -> None:
        """Give units their numbers, in order; each with its distinct tokens and their counts."""
        if not new:
            return
        first = len(self.lengths)
        self.numbers.update({name: first + offset for offset, name in enumerate(new)})
        self.lengths += [int(counts.sum()) for _, counts in new.values()]
        units = np.arange(first, len(self.lengths), dtype=np.int32)
        add_segment(
            self.segments,
            Segment(
                np.concatenate([tokens for tokens, _ in new.values()]),
                np.repeat(units, [tokens.size for tokens, _ in new.values()]),
                np.concatenate([counts for _, counts in new.values()]).astype(np.int32),
            ),
        )
