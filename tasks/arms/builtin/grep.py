"""The floor: which files hold most of the query's words, as substrings, whatever their case.

A query word consists of word characters, so each of its occurrences lies inside a run of word
characters. Counting it in the distinct runs of a corpus, each weighted by how often the run occurs
in a blob, gives exactly what counting in the lower-cased text gives, over a tenth of the bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.arms.builtin.builtin_session import Hit
from coldrun.tasks.arms.builtin.documents import DocumentSet, read_versions
from coldrun.tasks.arms.builtin.line_changes import count_changes
from coldrun.tasks.arms.builtin.token_cache import HUGE_BYTES, decode_text, is_binary
from coldrun.tasks.arms.builtin.unit_counts import (
    OpenDocuments,
    Segment,
    UnitStore,
    find_all,
    is_too_small,
)
from coldrun.tasks.lib.tokens import STOP_WORDS

MINIMUM_LENGTH = 3

LONGEST_CHAIN = 40
"""A blob whose text builds on more changes than this is counted whole again."""

REMEMBERED_WORDS = 10_000

_RUN = re.compile(r"\w+")
_NO_UNITS = np.empty(0, dtype=np.int32)


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


def find_runs(blocks: Iterable[RunBlock], word: str) -> NDArray[np.int64]:
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
        new = list(islice(reversed(self._numbers), len(self._numbers) - first))[::-1]
        if new:
            ends = np.cumsum([len(run) + 1 for run in new], dtype=np.int64)
            starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
            self._blocks.append(RunBlock(first, "\n".join(new), starts))
            while is_too_small([len(block.text) for block in self._blocks[-2:]]):
                self._blocks[-2:] = [_join(*self._blocks[-2:])]
        return numbers


def _join(one: RunBlock, other: RunBlock) -> RunBlock:
    starts = np.concatenate([one.starts, other.starts + len(one.text) + 1])
    return RunBlock(one.first, f"{one.text}\n{other.text}", starts)


def _positions(text: str, word: str) -> Iterator[int]:
    """Where `word` occurs, without overlaps, as `str.count` counts."""
    position = text.find(word)
    while position >= 0:
        yield position
        position = text.find(word, position + len(word))


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepTree:
    """One tree, or several together, ready to be searched; `contents` are the documents' units.

    A unit may be told as the change from an earlier one, which may be such a change itself:
    `changed` and `origins` pair each such unit with every unit that it builds on.
    """

    documents: OpenDocuments
    blocks: tuple[RunBlock, ...]
    segments: tuple[Segment, ...]
    total_units: int
    contents: NDArray[np.int32]
    changed: NDArray[np.int32]
    origins: NDArray[np.int32]

    def search(self, query: str) -> Iterator[Hit]:
        """The files that hold a word, best first; what is equal in both goes by tree and path.

        The score is the number of distinct words, plus a fraction below one that grows with the
        number of occurrences.
        """
        distinct = np.zeros(len(self.contents), dtype=np.int64)
        total = np.zeros(len(self.contents), dtype=np.int64)
        for word in search_words(query):
            counts = self.count(word)
            distinct += counts > 0
            total += counts
        order = np.lexsort((-total, -distinct))  # stable: documents come by tree and path
        for index in order[: np.count_nonzero(distinct)].tolist():
            score = distinct[index] + total[index] / (total[index] + 1)
            document = self.documents.files[index]
            yield Hit(document.tree, document.path, float(score))

    def count(self, word: str) -> NDArray[np.int64]:
        """How often each document's lower-cased content holds `word`, a lower-case run."""
        told = self._add_up(*find_all(self.segments, find_runs(self.blocks, word))[:2])
        by_unit = told + self._add_up(self.changed, told[self.origins])
        return by_unit[self.contents].astype(np.int64)

    def _add_up(self, units: NDArray[np.int32], counts: NDArray[np.generic]) -> NDArray[np.float64]:
        """The sum of the counts of each unit, exact up to 2**53."""
        total = np.bincount(units, counts, minlength=self.total_units)
        return total.astype(np.float64, copy=False)


class GrepStore(UnitStore):
    """The runs of the blobs seen so far."""

    def open_tree(self, sets: Sequence[DocumentSet]) -> GrepTree:
        """Make a tree searchable, or several together; blobs that are new are read first.

        Raises:
            RepositoryError: A blob cannot be read.
        """
        with self._hold(sets) as documents:
            contents = [self._units.numbers[each.blob or ""] for each in documents.files]
            changed = [unit for unit in set(contents) if self._origins[unit].size]
            origins = [self._origins[unit] for unit in changed]
            return GrepTree(
                documents=documents,
                blocks=self._runs.blocks,
                segments=tuple(self._units.segments),
                total_units=len(self._origins),
                contents=np.array(contents, dtype=np.int32),
                changed=np.repeat(
                    np.array(changed, dtype=np.int32),
                    np.array([each.size for each in origins], dtype=np.int64),
                ),
                origins=np.concatenate([_NO_UNITS, *origins]),
            )

    def close(self) -> None:
        """Nothing is open."""

    def _forget(self) -> None:
        super()._forget()
        self._origins = [_NO_UNITS]
        self._runs = RunNumbers()

    def _add(self, each: DocumentSet) -> None:
        new = [blob for blob in each.blobs if blob not in self._units.numbers]
        origins: list[NDArray[np.int32]] = []
        counted = dict(self._count(each, new, origins))  # all of them before any is known
        numbers = iter(self._runs.number(run for counts in counted.values() for run in counts))
        self._units.add(
            {
                blob: (
                    np.array(list(islice(numbers, len(counts))), dtype=np.int64),
                    np.array(list(counts.values()), dtype=np.int32),
                )
                for blob, counts in counted.items()
            }
        )
        self._origins += origins

    def _count(
        self, each: DocumentSet, blobs: Sequence[str], origins: list[NDArray[np.int32]]
    ) -> Iterator[tuple[str, Mapping[str, int]]]:
        """The counts of each new blob, or their change where it is a version of a known one."""
        numbers = self._units.numbers
        earlier = {
            blob: old
            for blob, old in self._versions.earlier(each, blobs).items()
            if self._readings[old] == "text" and self._origins[numbers[old]].size < LONGEST_CHAIN
        }
        for blob, content, old in read_versions(
            each.objects, blobs, earlier, limit_bytes=HUGE_BYTES
        ):
            origin = _NO_UNITS
            counts: Mapping[str, int] = {}
            self._readings[blob] = "text"
            if content is None:
                self._readings[blob] = "huge"
            elif is_binary(content):
                self._readings[blob] = "binary"
            elif old is None:
                counts = count_runs(content)
            else:
                before = numbers[earlier[blob]]
                origin = np.append(self._origins[before], np.int32(before))
                counts = count_changes(old, content, count_runs)
            origins.append(origin)
            yield blob, counts


def count_runs(content: bytes) -> Counter[str]:
    """How often each run of word characters occurs in the lower-cased text."""
    return Counter(_RUN.findall(decode_text(content).lower()))


def search_words(query: str) -> tuple[str, ...]:
    """The distinct words of a query, lower-cased: three characters or more, no stop words."""
    words = dict.fromkeys(_RUN.findall(query.lower()))
    return tuple(
        word
        for word in words
        if len(word) >= MINIMUM_LENGTH and word not in STOP_WORDS and word.strip("_")
    )
