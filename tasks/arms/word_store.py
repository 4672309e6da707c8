"""How often a string of letters occurs in each blob, without reading the blobs again.

A query word consists of word characters, so each of its occurrences lies inside a run of word
characters. Counting it in the distinct runs of a corpus, each weighted by how often the run occurs
in a blob, gives exactly what counting in the lower-cased text gives, over a tenth of the bytes.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tasks.arms.documents import DocumentSet, Versions, join_documents, read_versions
from tasks.arms.line_changes import count_changes
from tasks.arms.token_cache import HUGE_BYTES, decode_text, is_binary

MAXIMUM_ENTRIES = 20_000_000
"""Run counts kept in memory (12 bytes each); beyond, all but the present tree is forgotten."""

MERGE_BELOW = 3
"""A chunk less than this many times as large as the next is merged with it, so that there are few
of them and each entry moves few times."""

LONGEST_CHAIN = 40
"""A blob whose text builds on so many changes is counted whole again."""

REMEMBERED_WORDS = 10_000

_RUN = re.compile(r"\w+")
_NO_UNITS = np.empty(0, dtype=np.int32)
_NO_COUNTS = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class WordChunk:
    """Some blobs: their distinct runs, joined by line ends, and entries (run, unit, count).

    `starts` has the position of each run in `text`, `bounds` that of its entries, with one more
    at the end. `found` remembers the words that were looked for.
    """

    text: str
    starts: NDArray[np.int64]
    bounds: NDArray[np.int64]
    units: NDArray[np.int32]
    counts: NDArray[np.int64]
    found: dict[str, tuple[NDArray[np.int32], NDArray[np.int64]]] = field(default_factory=dict)

    def find(self, word: str) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The units that hold `word`, and how often each does."""
        found = self.found.get(word)
        if found is None:
            found = self._find(word)
            if len(self.found) >= REMEMBERED_WORDS:
                self.found.clear()
            self.found[word] = found
        return found

    def _find(self, word: str) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        positions = list(_positions(self.text, word))
        runs, times = np.unique(
            np.searchsorted(self.starts, positions, side="right") - 1, return_counts=True
        )
        spans = [slice(self.bounds[run], self.bounds[run + 1]) for run in runs]
        units = np.concatenate([_NO_UNITS, *(self.units[span] for span in spans)])
        weighted = (self.counts[span] * each for span, each in zip(spans, times, strict=True))
        distinct, inverse = np.unique(units, return_inverse=True)
        counts = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(counts, inverse, np.concatenate([_NO_COUNTS, *weighted]))
        return distinct, counts

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.units.size

    @property
    def runs(self) -> list[str]:
        """The distinct runs, in the order of `starts`."""
        return self.text.split("\n") if self.text else []


@dataclass(frozen=True, slots=True)
class TreeWords:
    """The documents of one tree by the unit of their content; unit 0 holds nothing.

    A unit may be told as the change from an earlier one, which may be such a change itself:
    `changed` and `origins` pair each such unit with every unit that it builds on.
    """

    chunks: tuple[WordChunk, ...]
    total_units: int
    contents: NDArray[np.int32]
    changed: NDArray[np.int32]
    origins: NDArray[np.int32]

    def count(self, word: str) -> NDArray[np.int64]:
        """How often each document's lower-cased content holds `word`, a lower-case run."""
        told = np.zeros(self.total_units, dtype=np.int64)
        for chunk in self.chunks:
            units, counts = chunk.find(word)
            told[units] = counts
        by_unit = told.copy()
        np.add.at(by_unit, self.changed, told[self.origins])
        return by_unit[self.contents]


class WordStore:
    """The runs of the blobs seen so far, shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def view(self, sets: Sequence[DocumentSet]) -> TreeWords:
        """The words of a tree, or of several together; blobs that are new are read first.

        Raises:
            RepositoryError: A blob cannot be read.
        """
        with self._lock:
            if sum(chunk.size for chunk in self._chunks) > MAXIMUM_ENTRIES:
                self._forget()
            for each in sets:
                self._add(each)
            self._versions.see(sets)
            contents = [self._numbers[each.blob or ""] for each in join_documents(sets)]
            pairs = [(unit, origin) for unit in set(contents) for origin in self._origins[unit]]
            changed, origins = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
            return TreeWords(
                tuple(self._chunks),
                len(self._origins),
                np.array(contents, dtype=np.int32),
                changed,
                origins,
            )

    def count_unread(self, sets: Iterable[DocumentSet]) -> tuple[int, int]:
        """How many blobs of a tree that was viewed are binary, and how many are huge."""
        blobs = {blob for each in sets for blob in each.blobs}
        with self._lock:
            return len(blobs & self._binary), len(blobs & self._huge)

    def _forget(self) -> None:
        self._numbers = {"": 0}  # unit 0 holds nothing: no content, binary, huge
        self._origins: list[tuple[int, ...]] = [()]
        self._versions = Versions()
        self._chunks: list[WordChunk] = []
        self._binary: set[str] = set()
        self._huge: set[str] = set()

    def _add(self, each: DocumentSet) -> None:
        new = [blob for blob in each.blobs if blob not in self._numbers]
        if not new:
            return
        numbers: dict[str, int] = {}
        self._chunks.append(build_chunk(self._count(each, new, numbers)))
        self._numbers.update(numbers)  # only now: a blob that could not be read stays unknown
        while len(self._chunks) > 1 and self._chunks[-2].size < MERGE_BELOW * self._chunks[-1].size:
            self._chunks[-2:] = [merge_chunks(self._chunks[-2:])]

    def _count(
        self, each: DocumentSet, blobs: Sequence[str], numbers: dict[str, int]
    ) -> Iterator[tuple[int, Mapping[str, int]]]:
        """The counts of each new blob, or their change where it is a version of a known one."""
        earlier = {
            blob: old
            for blob, old in self._versions.earlier(each, blobs).items()
            if self._numbers[old] and len(self._origins[self._numbers[old]]) < LONGEST_CHAIN
        }
        for blob, content, old in read_versions(
            each.objects, blobs, earlier, limit_bytes=HUGE_BYTES
        ):
            numbers[blob] = 0
            if content is None:
                self._huge.add(blob)
            elif is_binary(content):
                self._binary.add(blob)
            else:
                numbers[blob] = len(self._origins)
                if old is None:
                    self._origins.append(())
                    yield numbers[blob], count_runs(decode_text(content))
                else:
                    origin = self._numbers[earlier[blob]]
                    self._origins.append((*self._origins[origin], origin))
                    before, now = decode_text(old), decode_text(content)
                    yield numbers[blob], count_changes(before, now, count_runs)


def count_runs(text: str) -> Counter[str]:
    """How often each run of word characters occurs in the lower-cased text."""
    return Counter(_RUN.findall(text.lower()))


def build_chunk(counted: Iterable[tuple[int, Mapping[str, int]]]) -> WordChunk:
    """A chunk of units with the counts of their runs, which may be negative changes."""
    numbers: dict[str, int] = {}
    rows = []
    for unit, counts in counted:
        runs = [numbers.setdefault(run, len(numbers)) for run in counts]
        rows.append(_rows(np.array(runs, dtype=np.int64), unit, list(counts.values())))
    return _sort_chunk(list(numbers), rows)


def merge_chunks(chunks: Sequence[WordChunk]) -> WordChunk:
    """One chunk with the entries of several, none of which share a unit."""
    numbers: dict[str, int] = {}
    rows = []
    for chunk in chunks:
        runs = np.array([numbers.setdefault(run, len(numbers)) for run in chunk.runs], np.int64)
        rows.append(_rows(np.repeat(runs, np.diff(chunk.bounds)), chunk.units, chunk.counts))
    return _sort_chunk(list(numbers), rows)


def _rows(
    runs: NDArray[np.int64], units: NDArray[np.int32] | int, counts: ArrayLike
) -> NDArray[np.int64]:
    """Entries as columns: the number of the run, the unit, the count."""
    rows = np.empty((3, runs.size), dtype=np.int64)
    rows[0], rows[1], rows[2] = runs, units, counts
    return rows


def _sort_chunk(runs: Sequence[str], rows: Sequence[NDArray[np.int64]]) -> WordChunk:
    table = np.concatenate([np.empty((3, 0), dtype=np.int64), *rows], axis=1)
    table = table[:, np.argsort(table[0], kind="stable")]
    return WordChunk(
        text="\n".join(runs),
        starts=np.cumsum([0, *(len(run) + 1 for run in runs)], dtype=np.int64)[:-1],
        bounds=np.searchsorted(table[0], np.arange(len(runs) + 1)),
        units=table[1].astype(np.int32),
        counts=table[2].copy(),
    )


def _positions(text: str, word: str) -> Iterator[int]:
    """Where `word` occurs, without overlaps, as `str.count` counts."""
    position = text.find(word)
    while position >= 0:
        yield position
        position = text.find(word, position + len(word))
