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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.arms.builtin.documents import (
    DocumentSet,
    Versions,
    join_documents,
    read_versions,
)
from coldrun.tasks.arms.builtin.line_changes import count_changes
from coldrun.tasks.arms.builtin.segments import Segment, add_segment, find_all
from coldrun.tasks.arms.builtin.token_cache import HUGE_BYTES, decode_text, is_binary
from coldrun.tasks.arms.builtin.word_runs import RunBlock, RunNumbers, find_runs

MAXIMUM_ENTRIES = 20_000_000
"""Run counts kept in memory (16 bytes each); beyond, all but the present tree is forgotten."""

LONGEST_CHAIN = 40
"""A blob whose text builds on so many changes is counted whole again."""

_RUN = re.compile(r"\w+")
_NO_UNITS = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class TreeWords:
    """The documents of one tree by the unit of their content; unit 0 holds nothing.

    A unit may be told as the change from an earlier one, which may be such a change itself:
    `changed` and `origins` pair each such unit with every unit that it builds on.
    """

    blocks: tuple[RunBlock, ...]
    segments: tuple[Segment, ...]
    total_units: int
    contents: NDArray[np.int32]
    changed: NDArray[np.int32]
    origins: NDArray[np.int32]

    def count(self, word: str) -> NDArray[np.int64]:
        """How often each document's lower-cased content holds `word`, a lower-case run."""
        told = self._add_up(*find_all(self.segments, find_runs(self.blocks, word)))
        by_unit = told + self._add_up(self.changed, told[self.origins])
        return by_unit[self.contents].astype(np.int64)

    def _add_up(self, units: NDArray[np.int32], counts: NDArray[np.generic]) -> NDArray[np.float64]:
        """The sum of the counts of each unit, exact up to 2**53."""
        total = np.bincount(units, counts, minlength=self.total_units)
        return total.astype(np.float64, copy=False)


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
            if sum(segment.size for segment in self._segments) > MAXIMUM_ENTRIES:
                self._forget()
            for each in sets:
                self._add(each)
            self._versions.see(sets)
            contents = [self._units[each.blob or ""] for each in join_documents(sets)]
            changed = [unit for unit in set(contents) if self._origins[unit].size]
            origins = [self._origins[unit] for unit in changed]
            return TreeWords(
                blocks=self._runs.blocks,
                segments=tuple(self._segments),
                total_units=len(self._origins),
                contents=np.array(contents, dtype=np.int32),
                changed=np.repeat(
                    np.array(changed, dtype=np.int32),
                    np.array([each.size for each in origins], dtype=np.int64),
                ),
                origins=np.concatenate([_NO_UNITS, *origins]),
            )

    def count_unread(self, sets: Iterable[DocumentSet]) -> tuple[int, int]:
        """How many blobs of a tree that was viewed are binary, and how many are huge."""
        blobs = {blob for each in sets for blob in each.blobs}
        with self._lock:
            return len(blobs & self._binary), len(blobs & self._huge)

    def _forget(self) -> None:
        self._units = {"": 0}  # unit 0 holds nothing: no content, binary, huge
        self._origins = [_NO_UNITS]
        self._versions = Versions()
        self._runs = RunNumbers()
        self._segments: list[Segment] = []
        self._binary: set[str] = set()
        self._huge: set[str] = set()

    def _add(self, each: DocumentSet) -> None:
        new = [blob for blob in each.blobs if blob not in self._units]
        units: dict[str, int] = {}
        counted = list(self._count(each, new, units))
        if counted:
            runs = self._runs.number(run for _, counts in counted for run in counts)
            add_segment(
                self._segments,
                Segment(
                    tokens=np.array(runs, dtype=np.int64),
                    units=np.repeat(
                        np.array([unit for unit, _ in counted], dtype=np.int32),
                        [len(counts) for _, counts in counted],
                    ),
                    counts=np.array(
                        [count for _, counts in counted for count in counts.values()], np.int32
                    ),
                ),
            )
        self._units.update(units)  # only now: a blob that could not be read stays unknown

    def _count(
        self, each: DocumentSet, blobs: Sequence[str], units: dict[str, int]
    ) -> Iterator[tuple[int, Mapping[str, int]]]:
        """The counts of each new blob, or their change where it is a version of a known one."""
        earlier = {
            blob: old
            for blob, old in self._versions.earlier(each, blobs).items()
            if self._units[old] and self._origins[self._units[old]].size < LONGEST_CHAIN
        }
        for blob, content, old in read_versions(
            each.objects, blobs, earlier, limit_bytes=HUGE_BYTES
        ):
            units[blob] = 0
            if content is None:
                self._huge.add(blob)
            elif is_binary(content):
                self._binary.add(blob)
            elif old is None:
                units[blob] = self._new_unit(_NO_UNITS)
                yield units[blob], count_runs(content)
            else:
                origin = self._units[earlier[blob]]
                units[blob] = self._new_unit(np.append(self._origins[origin], np.int32(origin)))
                yield units[blob], count_changes(old, content, count_runs)

    def _new_unit(self, origins: NDArray[np.int32]) -> int:
        self._origins.append(origins)
        return len(self._origins) - 1


def count_runs(content: bytes) -> Counter[str]:
    """How often each run of word characters occurs in the lower-cased text."""
    return Counter(_RUN.findall(decode_text(content).lower()))
