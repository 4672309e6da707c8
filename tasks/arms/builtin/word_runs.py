"""Distinct runs of word characters, numbered, and the search for a word inside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.arms.builtin.segments import is_too_small

REMEMBERED_WORDS = 10_000


@dataclass(frozen=True, slots=True)
class RunBlock:
    """Runs that are numbered one after the other from `first`, joined by line ends.

    `starts` has the position of each in `text`; `found` remembers the words that were looked for.
    """

    first: int
    text: str
    starts: NDArray[np.int64]
    found: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def find(self, word: str) -> NDArray[np.int64]:
        """The number of the run of each occurrence of `word`."""
        found = self.found.get(word)
        if found is None:
            positions = np.array(list(_positions(self.text, word)), dtype=np.int64)
            found = self.first - 1 + np.searchsorted(self.starts, positions, side="right")
            if len(self.found) >= REMEMBERED_WORDS:
                self.found.clear()
            self.found[word] = found
        return found


def find_runs(blocks: tuple[RunBlock, ...], word: str) -> NDArray[np.int64]:
    """The number of the run of each occurrence of `word` in all blocks."""
    return np.concatenate([np.empty(0, np.int64), *(block.find(word) for block in blocks)])


class RunNumbers:
    """Gives each run a number, once and for all, and keeps the runs searchable."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._blocks: list[RunBlock] = []

    @property
    def blocks(self) -> tuple[RunBlock, ...]:
        """All runs so far. What is added later is in other blocks."""
        return tuple(self._blocks)

    def number(self, runs: Iterable[str]) -> list[int]:
        """The number of each run; new ones get the next."""
        first = len(self._numbers)
        numbers = [self._numbers.setdefault(run, len(self._numbers)) for run in runs]
        self._add(first)
        return numbers

    def _add(self, first: int) -> None:
        """Make the runs from number `first` on searchable."""
        new = list(islice(reversed(self._numbers), len(self._numbers) - first))[::-1]
        if not new:
            return
        ends = np.cumsum([len(run) + 1 for run in new], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        self._blocks.append(RunBlock(first, "\n".join(new), starts))
        while is_too_small([len(block.text) for block in self._blocks[-2:]]):
            self._blocks[-2:] = [_join(*self._blocks[-2:])]


def _join(one: RunBlock, other: RunBlock) -> RunBlock:
    starts = np.concatenate([one.starts, other.starts + len(one.text) + 1])
    return RunBlock(one.first, f"{one.text}\n{other.text}", starts)


def _positions(text: str, word: str) -> Iterator[int]:
    """Where `word` occurs, without overlaps, as `str.count` counts."""
    position = text.find(word)
    while position >= 0:
        yield position
        position = text.find(word, position + len(word))
