"""Counts of tokens in units of text, shared by all trees that a session searches.

A unit is a blob or a path. A tree is a list of units, so a tree that shares most of them with the
one before costs only what is new, and every search of every tree runs over the same counts.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.arms.builtin.documents import Document, DocumentSet, Versions, join_documents

MERGE_BELOW = 3
"""A part less than this many times as large as the next is merged with it, so that there are few of
them and each entry moves few times."""

MAXIMUM_ENTRIES = 20_000_000
"""Counts kept in memory (16 bytes each); beyond, all but the present tree is forgotten."""

Found = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.intp]]
"""Units, counts, to be added up (a unit may be there twice), and the places of their tokens."""


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
        places = np.repeat(np.arange(len(tokens)), sizes)
        return self.units[entries], self.counts[entries], places


def find_all(segments: Iterable[Segment], tokens: NDArray[Any]) -> Found:
    """The entries of some tokens in several segments."""
    nothing = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.intp)
    units, counts, places = zip(nothing, *(each.find(tokens) for each in segments), strict=True)
    return np.concatenate(units), np.concatenate(counts), np.concatenate(places)


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


class OpenDocuments(NamedTuple):
    """All documents, by tree and path, and how many of their blobs are not read."""

    files: Sequence[Document]
    binary: int
    huge: int


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


class UnitStore:
    """The units of the blobs seen so far, shared by threads. A search says what units hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._units = UnitCounts()
        self._versions = Versions()
        self._readings: dict[str | None, str] = {}

    def _add(self, each: DocumentSet) -> None:
        """Add the units of a tree that are new, and how their blobs were read."""
        raise NotImplementedError

    @contextmanager
    def _hold(self, sets: Sequence[DocumentSet]) -> Iterator[OpenDocuments]:
        """The documents of a tree, or of several together, all of which have their units; no other
        thread adds any within the block."""
        with self._lock:
            if self._units.is_full:
                self._forget()
            for each in sets:
                self._add(each)
            self._versions.see(sets)
            documents = join_documents(sets)
            read = Counter(self._readings.get(blob) for blob in {each.blob for each in documents})
            yield OpenDocuments(documents, binary=read["binary"], huge=read["huge"])
