"""Which commits of a history are measured, and in which order. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from pathspec import PathSpec

from coldrun.tasks.stats.decomposition import collapse_equal

DOCUMENTATION = (
    "*.md",
    "*.rst",
    "README*",
    "*.adoc",
    "docs/",
    "doc/",
    "LICENSE*",
    "COPYING*",
    "AUTHORS*",
    "CHANGES*",
    "CHANGELOG*",
)
"""Files that cannot move a score, unless the product reads them (gitignore patterns)."""

_DOCUMENTATION = PathSpec.from_lines("gitignore", DOCUMENTATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCommit:
    """One commit of the product. `committed` is seconds since 1970 in UTC.

    `paths` are what it changed against its first parent. `distance` counts the commits since the
    one before it in the selection, 1 for a neighbour.
    """

    commit: str
    tree: str
    subject: str
    committed: int
    paths: tuple[str, ...] = ()
    distance: int = 1

    @property
    def committed_at(self) -> str:
        """When it was committed, ISO 8601 in UTC."""
        return dt.datetime.fromtimestamp(self.committed, dt.UTC).isoformat()

    @property
    def is_docs_only(self) -> bool:
        """Whether it changed documentation and nothing else."""
        return bool(self.paths) and all(_DOCUMENTATION.match_file(path) for path in self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Neighbouring commits with one product tree; the first of them stands for all.

    `stand_in` is the place of the first node with this tree: a tree that comes back after a
    revert is not measured again.
    """

    place: int
    commits: tuple[HistoryCommit, ...]
    stand_in: int

    @property
    def first(self) -> HistoryCommit:
        """The commit that stands for all."""
        return self.commits[0]

    @property
    def tree(self) -> str:
        """The tree of all its commits."""
        return self.commits[0].tree

    @property
    def is_repeated(self) -> bool:
        """Whether an earlier node has the same tree."""
        return self.stand_in != self.place


def build_nodes(commits: Sequence[HistoryCommit]) -> tuple[Node, ...]:
    """Group a history, oldest first, into points that have to be told apart."""
    groups = collapse_equal([commit.tree for commit in commits])
    first_place: dict[str, int] = {}
    nodes = []
    for place, group in enumerate(groups):
        tree = commits[group[0]].tree
        nodes.append(
            Node(
                place=place,
                commits=tuple(commits[number] for number in group),
                stand_in=first_place.setdefault(tree, place),
            )
        )
    return tuple(nodes)


def thin_out(
    commits: Sequence[HistoryCommit],
    *,
    every: int = 1,
    at_most: int | None = None,
    since: dt.date | None = None,
) -> tuple[HistoryCommit, ...]:
    """Leave out commits of a history, oldest first.

    Args:
        every: Keep every Nth commit from the first; the newest always stays.
        at_most: Keep at most N, spread evenly, both ends among them (1: the newest).
        since: Leave out what was committed before this day, in UTC.
    """
    distances = accumulate(commit.distance for commit in commits)
    reach = dict(zip((commit.commit for commit in commits), distances, strict=True))
    kept = list(commits)
    if since is not None:
        start = dt.datetime.combine(since, dt.time(), dt.UTC).timestamp()
        kept = [commit for commit in kept if commit.committed >= start]
    if every > 1 and kept:
        kept = [*kept[:-1:every], kept[-1]]
    if at_most is not None and len(kept) > at_most:
        last, gaps = len(kept) - 1, at_most - 1
        kept = [kept[round(n * last / gaps)] for n in range(at_most)] if gaps else kept[-1:]
    return tuple(
        replace(commit, distance=reach[commit.commit] - reach[kept[number - 1].commit])
        if number
        else commit
        for number, commit in enumerate(kept)
    )


def order_nodes(nodes: Sequence[Node]) -> list[Node]:
    """The nodes that have to be measured, each tree once, in the order of measuring."""
    distinct = [node for node in nodes if not node.is_repeated]
    return [distinct[place] for place in interleave_ends(len(distinct))]


def interleave_ends(count: int) -> tuple[int, ...]:
    """Places from both ends inwards: oldest, newest, second oldest, second newest, and so on.

    A machine that gets slower or warmer in the meantime then shows as a zigzag and not as a trend.
    """
    places = range(count)
    return tuple(chain.from_iterable(zip(places, reversed(places), strict=True)))[:count]
