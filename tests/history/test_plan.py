"""Order and thinning of the points of a history."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.history.history_plan import HistoryCommit, build_nodes, interleave_ends, thin_out

DAY = 86_400


def _line(count: int, trees: list[int] | None = None) -> list[HistoryCommit]:
    return [
        HistoryCommit(
            commit=f"c{n}", tree=f"t{trees[n] if trees else n}", subject="", committed=n * DAY
        )
        for n in range(count)
    ]


@given(st.integers(0, 40))
def test_interleaving_visits_every_point_once_from_both_ends(count: int) -> None:
    """Oldest, newest, second oldest, and so on: neighbours in time are far apart in history."""
    order = interleave_ends(count)
    assert sorted(order) == list(range(count))
    assert order[:2] == (0, count - 1)[: len(order)] or count == 1


@given(st.integers(1, 60), st.integers(1, 9), st.one_of(st.none(), st.integers(1, 20)))
def test_thinning_keeps_the_newest_and_counts_what_it_left_out(
    count: int, every: int, at_most: int | None
) -> None:
    """The newest always stays, the limit holds, and distances add up to the whole way."""
    kept = thin_out(_line(count), every=every, at_most=at_most)
    places = [int(commit.commit[1:]) for commit in kept]
    assert places[-1] == count - 1
    assert places == sorted(set(places))
    assert at_most is None or len(kept) <= at_most
    assert sum(commit.distance for commit in kept[1:]) == places[-1] - places[0]


def test_thinning_by_day_and_to_nothing() -> None:
    """A day is inclusive and in UTC; a day after all leaves nothing."""
    kept = thin_out(_line(5), since=dt.date(1970, 1, 3))
    assert [commit.commit for commit in kept] == ["c2", "c3", "c4"]
    assert thin_out(_line(5), since=dt.date(2000, 1, 1)) == ()


def test_nodes_group_neighbours_and_remember_trees_that_come_back() -> None:
    """Neighbours with one tree are one node; a reverted tree stands on its first node."""
    nodes = build_nodes(_line(5, [1, 1, 2, 1, 3]))
    assert [[commit.commit for commit in node.commits] for node in nodes] == [
        ["c0", "c1"],
        ["c2"],
        ["c3"],
        ["c4"],
    ]
    assert [node.stand_in for node in nodes] == [0, 1, 0, 3]
    assert [node.is_repeated for node in nodes] == [False, False, True, False]


def test_documentation_is_told_by_name() -> None:
    """A commit is documentation only when all it touched is."""

    def touches(*paths: str) -> bool:
        return replace(_line(1)[0], paths=paths).is_docs_only

    assert touches("README.md", "docs/guide/start.py", "CHANGES.rst")
    assert not touches("README.md", "src/gate.py")
    assert not touches("words.txt")
    assert not touches()
