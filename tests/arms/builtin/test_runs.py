"""Looking for a word inside numbered runs, against looking in each of them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.arms.builtin import word_runs as runs_module
from coldrun.tasks.arms.builtin.word_runs import RunNumbers, find_runs

names = st.text(st.sampled_from("abß_é0"), min_size=1, max_size=4)


@given(st.lists(st.lists(names, max_size=6), max_size=8), names)
def test_find_runs_any_batches_gives_each_occurrence(batches: list[list[str]], word: str) -> None:
    """Numbers are stable, and a run is found as often as it holds the word."""
    numbers = RunNumbers()
    given_out: dict[str, int] = {}
    for batch in batches:
        for run, number in zip(batch, numbers.number(batch), strict=True):
            assert given_out.setdefault(run, number) == number
        expected = {number: run.count(word) for run, number in given_out.items() if word in run}
        assert dict(Counter(find_runs(numbers.blocks, word).tolist())) == expected
    assert sorted(given_out.values()) == list(range(len(given_out)))


def test_blocks_added_to_later_still_say_the_same() -> None:
    """Who holds the blocks of a tree is not surprised by those of the next."""
    numbers = RunNumbers()
    numbers.number(["word"])
    blocks = numbers.blocks
    numbers.number(["words", "wordy"])
    assert find_runs(blocks, "word").tolist() == [0]
    assert find_runs(numbers.blocks, "word").tolist() == [0, 1, 2]


def test_find_more_words_than_remembered_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of looked-for words is bounded and never wrong."""
    monkeypatch.setattr(runs_module, "REMEMBERED_WORDS", 2)
    numbers = RunNumbers()
    numbers.number(["one", "two", "three", "four"])
    for word, number in [("one", 0), ("two", 1), ("three", 2), ("four", 3), ("one", 0)]:
        assert find_runs(numbers.blocks, word).tolist() == [number]
        assert len(numbers.blocks[0].found) <= 2
