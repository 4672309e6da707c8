"""Counting substrings in distinct runs, against counting them in the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.arms.builtin import grep, unit_counts
from coldrun.tasks.arms.builtin.grep import GrepStore, RunNumbers, find_runs, search_words
from coldrun.tasks.lib.git.object_reader import ObjectReader
from tests.arms.builtin.conftest import GitRepo, sets_at

MakeRepo = Callable[..., GitRepo]
names = st.text(st.sampled_from("abß_é0"), min_size=1, max_size=4)


@pytest.mark.parametrize(("limit", "chain"), [(0, 40), (10**9, 40), (10**9, 2)])
def test_open_tree_trees_of_a_history_count_as_their_files_do(
    make_repo: MakeRepo, monkeypatch: pytest.MonkeyPatch, limit: int, chain: int
) -> None:
    """One growing store counts every tree as reading its files does, even when it forgets."""
    monkeypatch.setattr(unit_counts, "MAXIMUM_ENTRIES", limit)
    monkeypatch.setattr(grep, "LONGEST_CHAIN", chain)
    repo, store = make_repo(), GrepStore()
    for number in range(8):
        content = f"Word{number} sub-word in_words\n" * number
        longer = "".join(f"line {n} of Words{n % 3}\n" for n in range(number, 2 * number))
        repo.commit(
            {f"f{number}.py": content, "same.py": content, "grow.py": longer, "bin": b"word\0"}
        )
        sets = sets_at(repo)
        tree = store.open_tree(sets)
        for word in ("word", f"word{number}", "absent"):
            expected = [
                0 if each.path == "bin" else (repo.path / each.path).read_text().lower().count(word)
                for each in sets[0].documents
            ]
            assert tree.count(word).tolist() == expected
        assert (tree.documents.binary, tree.documents.huge) == (1, 0)


def test_open_tree_failed_read_is_tried_again(
    make_repo: MakeRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blob that could not be read once is not taken for an empty one afterwards."""
    repo, store = make_repo(files={"a.py": "word"}), GrepStore()
    with monkeypatch.context() as patch:
        patch.setattr(ObjectReader, "read_blobs", _fail)
        with pytest.raises(OSError, match="gone"):
            store.open_tree(sets_at(repo))
    assert store.open_tree(sets_at(repo)).count("word").tolist() == [1]


def _fail(*_: object, **__: object) -> None:
    raise OSError("gone")


@given(st.lists(st.lists(names, max_size=6), max_size=8), names)
def test_find_runs_any_batches_gives_each_occurrence(batches: list[list[str]], word: str) -> None:
    """Numbers are stable, and a run is found as often as it holds the word; blocks that were taken
    before a batch know nothing of it."""
    numbers = RunNumbers()
    given_out: dict[str, int] = {}
    for batch in batches:
        before, known = numbers.blocks, dict(given_out)
        for run, number in zip(batch, numbers.number(batch), strict=True):
            assert given_out.setdefault(run, number) == number
        for blocks, runs in ((before, known), (numbers.blocks, given_out)):
            expected = {number: run.count(word) for run, number in runs.items() if word in run}
            assert dict(Counter(find_runs(blocks, word).tolist())) == expected
    assert sorted(given_out.values()) == list(range(len(given_out)))


def test_find_more_words_than_remembered_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of looked-for words is bounded and never wrong."""
    monkeypatch.setattr(grep, "REMEMBERED_WORDS", 2)
    numbers = RunNumbers()
    numbers.number(["one", "two", "three", "four"])
    for word, number in [("one", 0), ("two", 1), ("three", 2), ("four", 3), ("one", 0)]:
        assert find_runs(numbers.blocks, word).tolist() == [number]
        assert len(numbers.blocks[0].found) <= 2


def test_search_words_drop_stop_words_and_short_ones() -> None:
    """Distinct, lower-cased, three characters or more, with something in them."""
    words = search_words("Fix THE fix of __init__ at io, ___ and utf8")
    assert words == ("fix", "__init__", "utf8")
