"""The history control: earlier commits whose messages are like the query vote for their files.

All that it knows is the log up to the base commit, as anyone with `git log` does. Messages are
ranked by BM25; the best `VOTERS` of them give each file that they changed, under its name at base,
their squared score over the root of the number of these files. Of six such rules and one that
joins all messages of a file, this one found most over all tasks of click, requests and sqlalchemy.
"""

from __future__ import annotations

import math
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.arms.builtin.builtin_session import Hit
from coldrun.tasks.arms.builtin.documents import DocumentSet, join_documents
from coldrun.tasks.arms.builtin.token_cache import count_hashes, decode_text, hash_token
from coldrun.tasks.arms.builtin.unit_counts import OpenDocuments, Segment, UnitCounts, find_all
from coldrun.tasks.lib.git.commit_log import LogEntry
from coldrun.tasks.lib.git.path_text import encode_path
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.tokens import tokenize

VOTERS = 50
"""How many of the most similar commits vote."""

MOST_COMMITS = 50_000
"""The newest commits up to base that are read; what is older is forgotten."""

_TRAILER = re.compile(r"^[A-Z][a-z]+(?:-[A-Za-z]+)+ *:.*$", re.MULTILINE)


Age = tuple[int, int, str]
"""What orders commits: seconds since 1970, then parents before children, then the name."""

Ages = Mapping[int, Age]
Renames = Mapping[str, Sequence[tuple[Age, str]]]


class Past(NamedTuple):
    """What one repository knew at a base commit, by numbers of commits.

    `commits` are those up to it that change files, shape (commits,); `renames` are those among
    them by the earlier name: the newest first, each with the name at base. `lengths` has the words
    of each message, `segments` where they are.
    """

    commits: NDArray[np.bool_]
    ages: Ages
    renames: Renames
    paths: Sequence[Sequence[str]]
    lengths: NDArray[np.int64]
    segments: Sequence[Segment]

    def files_at_base(self, number: int) -> set[str]:
        """The files of a commit under the names that they have at base."""
        age = self.ages[number]
        return {_name_at_base(path, age, self.renames) for path in self.paths[number]}

    def locate(self, tokens: NDArray[np.uint64]) -> TokenPlaces:
        """Where tokens occur in messages."""
        units, counts, places = find_all(self.segments, tokens)
        numbers = units - 1  # the first unit is that of nothing
        kept = np.flatnonzero(self.commits[numbers])
        holders = np.bincount(places[kept], minlength=tokens.size)
        return TokenPlaces(numbers[kept], counts[kept], places[kept], holders)


class TokenPlaces(NamedTuple):
    """Entries of some tokens: commits, counts and the tokens' places; and each one's commits."""

    commits: NDArray[np.int32]
    counts: NDArray[np.int32]
    places: NDArray[np.intp]
    holders: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class HistoryTree:
    """The pasts of one tree, or of several together, ready to be searched."""

    documents: OpenDocuments
    pasts: Mapping[str, Past]
    paths: Mapping[str, frozenset[str]]
    k1: float
    b: float

    def search(self, query: str) -> Iterator[Hit]:
        """The files with a vote, best first; equal scores by tree and path."""
        votes: dict[tuple[str, str], float] = defaultdict(float)
        for name, number, score in self._voters(query):
            past = self.pasts[name]
            files = past.files_at_base(number) & self.paths[name]
            for path in files:
                votes[name, path] += score * score / math.sqrt(len(files))
        for (name, path), score in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
            yield Hit(name, path, score)

    def _voters(self, query: str) -> list[tuple[str, int, float]]:
        """The most similar commits: tree, number and BM25 score; of equals the newest."""
        tokens, repeats = np.unique(
            np.array([hash_token(token) for token in tokenize(query)], dtype=np.uint64),
            return_counts=True,
        )
        found = {name: past.locate(tokens) for name, past in self.pasts.items()}
        total = sum(np.count_nonzero(past.commits) for past in self.pasts.values())
        holders = sum(counts.holders for counts in found.values()) + np.zeros(tokens.size)
        idf = repeats * np.log(1 + (total - holders + 0.5) / (holders + 0.5))
        words = sum(past.lengths[past.commits].sum() for past in self.pasts.values())
        best: list[tuple[float, Age, str, int]] = []
        for name, (units, times, places, _) in found.items():
            past = self.pasts[name]
            norms = self.k1 * (1 - self.b + self.b * past.lengths[units] * total / max(words, 1))
            scores = np.bincount(units, idf[places] * times / (norms + times))
            at_least = np.partition(scores, -VOTERS)[-VOTERS] if scores.size > VOTERS else 0.0
            for number in np.flatnonzero((scores >= at_least) & (scores > 0)).tolist():
                best.append((float(scores[number]), past.ages[number], name, number))
        best.sort(reverse=True)
        return [(name, number, score) for score, _, name, number in best[:VOTERS]]


@dataclass(slots=True)
class CommitLog:
    """The commits of one repository that were read so far, numbered.

    `closed` holds those all of whose ancestors were read. `lengths` is -1 where no file was
    changed.
    """

    repository: Repository
    numbers: dict[str, int] = field(default_factory=dict)
    parents: list[tuple[str, ...]] = field(default_factory=list)
    ages: dict[int, Age] = field(default_factory=dict)
    paths: list[tuple[str, ...]] = field(default_factory=list)
    renames: list[tuple[int, tuple[tuple[str, str], ...]]] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    words: UnitCounts = field(default_factory=UnitCounts)
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _tip: str | None = None
    _walked: tuple[int, NDArray[np.bool_]] = (-1, np.zeros(0, bool))

    def open_past(self, base: str) -> Past:
        """What was known at `base`, whatever else was read.

        Raises:
            RepositoryError: The log cannot be read.
        """
        commits, ages = self._read(base)
        renames: dict[str, list[tuple[Age, str]]] = defaultdict(list)
        mine = [entry for entry in self.renames if commits[entry[0]]]
        for number, pairs in sorted(mine, key=lambda entry: ages[entry[0]], reverse=True):
            age = ages[number]
            named = [(source, _name_at_base(path, age, renames)) for source, path in pairs]
            for source, name in named:
                renames[source].append((age, name))
        changing = commits & (self.lengths >= 0)
        segments = tuple(self.words.segments)
        return Past(changing, ages, renames, self.paths, self.lengths, segments)

    def _read(self, base: str) -> tuple[NDArray[np.bool_], Ages]:
        """Which commits are up to `base`, and their ages; those that are new are read first."""
        found: list[str] = []
        if base not in self.closed:
            known = [f"^{self._tip}"] if self._tip else []
            found = self._add(self.repository.stream_log([base, *known], last=MOST_COMMITS))
            if len(found) < MOST_COMMITS:
                self._close(found)
                self._tip = base
        if base in self.closed:
            commits = self._walk(self.numbers[base])
            if np.count_nonzero(commits) < MOST_COMMITS:
                return commits, self.ages
        if base in self.closed or self._tip:
            found = self._add(self.repository.stream_log([base], last=MOST_COMMITS))
        commits = np.zeros(len(self.parents), dtype=bool)
        listed = [self.numbers[commit] for commit in found]
        commits[listed] = True
        ages = {each: self.ages[each] for each in listed}
        return commits, {n: (age[0], -at, age[2]) for at, (n, age) in enumerate(ages.items())}

    def _walk(self, base: int) -> NDArray[np.bool_]:
        """Which commits `base` descends from, and itself; an earlier walk is continued."""
        tip, before = self._walked
        up_to = np.zeros(len(self.parents), dtype=bool)
        seen, waiting = {base}, [base]
        while waiting:
            number = waiting.pop()
            if number < before.size and before[number]:
                continue
            new = {self.numbers[parent] for parent in self.parents[number]} - seen
            seen |= new
            waiting += new
        if tip in seen:
            up_to[: before.size] = before
        elif before.size:
            self._walked = (-1, np.zeros(0, bool))
            return self._walk(base)
        up_to[list(seen)] = True
        self._walked = base, up_to
        return up_to

    def _add(self, entries: Iterator[LogEntry]) -> list[str]:
        """Take in what is new; gives all commits of the log."""
        found, new = [], {}
        for entry in entries:
            found.append(entry.commit)
            if entry.commit in self.numbers:
                continue
            number = self.numbers[entry.commit] = len(self.parents)
            self.parents.append(entry.parents)
            self.ages[number] = (entry.committed, 0, entry.commit)
            self.paths.append(tuple(encode_path(change.path) for change in entry.changes))
            renames = tuple(
                (encode_path(change.source), encode_path(change.path))
                for change in entry.changes
                if change.status == "R" and change.source is not None
            )
            if renames:
                self.renames.append((number, renames))
            message = decode_text(entry.message) if entry.changes else ""
            tokens = count_hashes(_TRAILER.sub("", message))
            new[entry.commit] = (tokens.hashes, tokens.counts)
        known = self.lengths.size
        self.words.add(new)
        lengths = np.array(self.words.lengths[1 + known :], dtype=np.int64)
        changing = np.array([bool(paths) for paths in self.paths[known:]], dtype=bool)
        self.lengths = np.append(self.lengths, np.where(changing, lengths, -1))
        return found

    def _close(self, found: Sequence[str]) -> None:
        """All ancestors of these commits, which come after them, are known."""
        for commit in reversed(found):
            number = self.numbers[commit]
            older = (self.ages[self.numbers[parent]][1] for parent in self.parents[number])
            seconds, _, name = self.ages[number]
            self.ages[number] = (seconds, 1 + max(older, default=0), name)
        self.closed.update(found)


class HistoryStore:
    """The logs of the repositories that sessions of one process search."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[Path, CommitLog] = {}

    def open_tree(self, sets: Sequence[DocumentSet], *, k1: float, b: float) -> HistoryTree:
        """Make the past of a tree searchable, or of several together.

        Raises:
            RepositoryError: A log cannot be read.
        """
        with self._lock:
            pasts = {each.name: self._log(each).open_past(each.commit) for each in sets}
        return HistoryTree(
            documents=OpenDocuments(join_documents(sets), binary=0, huge=0),
            pasts=pasts,
            paths={each.name: frozenset(file.path for file in each.documents) for each in sets},
            k1=k1,
            b=b,
        )

    def close(self) -> None:
        """Nothing is kept open."""

    def _log(self, each: DocumentSet) -> CommitLog:
        place = each.objects.git_dir
        if place not in self._logs:
            self._logs[place] = CommitLog(Repository.open(place))
        return self._logs[place]


def _name_at_base(path: str, age: Age, renames: Renames) -> str:
    """What a file that had a name at some age is called at base: the next rename decides."""
    for renamed_at, name in reversed(renames.get(path, ())):
        if renamed_at > age:
            return name
    return path
