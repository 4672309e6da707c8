"""Entries in merged segments, against a plain list of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.arms.builtin import unit_counts
from coldrun.tasks.arms.builtin.unit_counts import Segment, add_segment, find_all

entries = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(-3, 3)), max_size=8)


@given(st.lists(entries, max_size=8), st.lists(st.integers(0, 6), max_size=4))
def test_find_all_any_entries_are_those_of_the_tokens(
    batches: list[list[tuple[int, int, int]]], wanted: list[int]
) -> None:
    """Merged or not, every entry of a token is found, once for each time it is asked for."""
    segments: list[Segment] = []
    for batch in batches:
        table = np.array(batch, dtype=np.int64).reshape(-1, 3)
        add_segment(
            segments, Segment(table[:, 0], table[:, 1].astype("i4"), table[:, 2].astype("i4"))
        )
    units, counts, places = find_all(tuple(segments), np.array(wanted, dtype=np.int64))
    expected = Counter(
        (unit, count, place)
        for place, token in enumerate(wanted)
        for batch in batches
        for t, unit, count in batch
        if t == token
    )
    found = zip(units.tolist(), counts.tolist(), places.tolist(), strict=True)
    assert Counter(found) == expected


@pytest.mark.parametrize(("merge_below", "most"), [(3, 6), (0, 64)])
def test_add_segment_many_small_ones_leaves_few(
    monkeypatch: pytest.MonkeyPatch, merge_below: int, most: int
) -> None:
    """Without merging there would be as many as were added."""
    monkeypatch.setattr(unit_counts, "MERGE_BELOW", merge_below)
    segments: list[Segment] = []
    for unit in range(64):
        one = np.array([unit], dtype=np.int32)
        add_segment(segments, Segment(one.astype(np.int64), one, one))
    assert len(segments) <= most
    assert sum(segment.size for segment in segments) == 64
