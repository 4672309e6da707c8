"""Counting the lines that differ instead of the whole text."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.arms.builtin.line_changes import count_changes
from coldrun.tasks.arms.builtin.token_cache import count_hashes, decode_text, update_hashes
from coldrun.tasks.arms.builtin.word_store import count_runs

lines = st.sampled_from(
    ["def get_default(self):", "  return 1", "", "ΑΣ ΣΑΣ", "a\rb", "x x", "İ y"]
).map(str.encode)
texts = st.lists(lines | st.just(b"caf\xe9 \xce"), max_size=12).map(b"\n".join)


@given(texts, texts)
def test_count_changes_any_versions_add_up_to_the_later(old: bytes, new: bytes) -> None:
    """Counts of the earlier text plus the changes are those of the later one."""
    counts = Counter(count_runs(old))
    counts.update(count_changes(old, new, count_runs))
    assert {run: count for run, count in counts.items() if count} == count_runs(new)


@given(texts, texts)
def test_update_hashes_any_versions_equals_counting_anew(old: bytes, new: bytes) -> None:
    """Both ways give the same arrays, order and types included."""
    got = update_hashes(count_hashes(decode_text(old)), old, new)
    expected = count_hashes(decode_text(new))
    assert got.hashes.tolist() == expected.hashes.tolist()
    assert got.counts.tolist() == expected.counts.tolist()
    assert (got.hashes.dtype, got.counts.dtype) == (expected.hashes.dtype, expected.counts.dtype)


def test_count_changes_same_text_is_nothing() -> None:
    """No change, nothing to count; a line that moved is no change."""
    assert count_changes(b"a b\nc", b"c\na b", count_runs) == {}
