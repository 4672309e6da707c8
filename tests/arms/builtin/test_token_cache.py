"""The token cache over real repositories."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.arms.builtin.grep import count_runs
from coldrun.tasks.arms.builtin.line_changes import count_changes
from coldrun.tasks.arms.builtin.token_cache import (
    HUGE_BYTES,
    BlobTokens,
    TokenCache,
    count_hashes,
    decode_text,
    hash_token,
    update_hashes,
)
from coldrun.tasks.lib.errors import StorageError
from coldrun.tasks.lib.git.object_reader import ObjectReader
from coldrun.tasks.lib.git.repository import Repository
from tests.arms.builtin.conftest import GitRepo

MakeRepo = Callable[..., GitRepo]


class CountingReader(ObjectReader):
    """Remembers which blobs were read."""

    read: list[str]

    def read_blobs(self, blobs: Iterable[str], **options: Any) -> Any:
        self.read = list(blobs)
        return super().read_blobs(self.read, **options)


def load(cache: TokenCache, repo: GitRepo) -> tuple[dict[str, BlobTokens], int]:
    """The tokens of the newest commit, and how many blobs were read for them."""
    objects = CountingReader(repo.open().git_dir)
    entries = repo.open().list_tree("HEAD")
    return cache.load(objects, [entry.object_id for entry in entries]), len(objects.read)


def load_in_process(scratch: Path, path: Path) -> int:
    repository = Repository.open(path)
    blobs = [entry.object_id for entry in repository.list_tree("HEAD")]
    return len(TokenCache(scratch).load(ObjectReader(repository.git_dir), blobs))


def as_counts(row: BlobTokens) -> dict[int, int]:
    return dict(zip(row.tokens.hashes.tolist(), row.tokens.counts.tolist(), strict=True))


def test_load_new_blobs_counts_their_tokens(make_repo: MakeRepo, tmp_path: Path) -> None:
    """Counts are those of the text, by hash in ascending order."""
    repo = make_repo(files={"a.py": "def get_default(): return DefaultMap"})
    found, read = load(TokenCache(tmp_path), repo)
    (row,) = found.values()
    counted = as_counts(row)
    assert counted[hash_token("default")] == 2
    assert counted[hash_token("get_default")] == 1
    assert list(counted) == sorted(counted)
    assert (row.reading, read) == ("text", 1)


def test_load_known_blobs_reads_nothing_again(make_repo: MakeRepo, tmp_path: Path) -> None:
    """A later corpus pays only for what is new in it, in a new process too."""
    repo = make_repo(files={f"f{n}.py": f"word{n}" for n in range(20)})
    first, read = load(TokenCache(tmp_path), repo)
    repo.commit({"f0.py": "changed"})
    second, again = load(TokenCache(tmp_path), repo)
    assert (read, again) == (20, 1)
    shared = first.keys() & second.keys()
    assert len(shared) == 19
    assert all(as_counts(first[blob]) == as_counts(second[blob]) for blob in shared)


def test_load_binary_and_huge_blobs_are_told_and_hold_nothing(
    make_repo: MakeRepo, tmp_path: Path
) -> None:
    """NUL within 8 KiB is binary, later it is not; one byte over 1 MiB is huge; both are kept."""
    files = {
        "image": b"\x89PNG\0word",
        "late": b"word " * 2000 + b"\0",
        "limit": b"word " * (HUGE_BYTES // 5) + b"w" * (HUGE_BYTES % 5),
        "huge": b"w" * (HUGE_BYTES + 1),
        "empty": b"",
        "latin": "gr\xfc\xdfe word".encode("latin-1"),
    }
    repo = make_repo(files=files)
    for expected in (6, 0):
        found, read = load(TokenCache(tmp_path), repo)
        assert read == expected
        rows = {entry.path: found[entry.object_id] for entry in repo.open().list_tree("HEAD")}
        assert (rows["image"].reading, rows["huge"].reading) == ("binary", "huge")
        word = hash_token("word")
        holders = {path for path, row in rows.items() if word in row.tokens.hashes.tolist()}
        assert holders == {"late", "limit", "latin"}


def test_load_two_processes_at_once_agree(make_repo: MakeRepo, tmp_path: Path) -> None:
    """Processes that fill the same cache wait for each other instead of failing."""
    repo = make_repo(files={f"f{n}.py": f"word{n} " * 200 for n in range(600)})
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        counts = pool.starmap(load_in_process, [(tmp_path, repo.path)] * 2)
    assert counts == [600, 600]
    assert load(TokenCache(tmp_path), repo)[1] == 0


def test_load_many_threads_at_once_agree(make_repo: MakeRepo, tmp_path: Path) -> None:
    """One cache object serves threads that start together."""
    repo = make_repo(files={f"f{n}.py": f"word{n}" for n in range(50)})
    cache = TokenCache(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: load(cache, repo)[0], range(8)))
    assert all(result.keys() == results[0].keys() for result in results)


def test_load_damaged_cache_says_what_to_delete(make_repo: MakeRepo, tmp_path: Path) -> None:
    """A file that is not a database is named, with what to do about it."""
    cache = TokenCache(tmp_path)
    cache.path.parent.mkdir(parents=True)
    cache.path.write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match="delete the file"):
        load(cache, make_repo(files={"a": "b"}))


def test_load_interrupted_write_keeps_whole_rows_only(make_repo: MakeRepo, tmp_path: Path) -> None:
    """Rows of a transaction that never ended are not there, and are counted again."""
    repo = make_repo(files={"a": "one", "b": "two"})
    cache = TokenCache(tmp_path)
    load(cache, repo)
    connection = sqlite3.connect(cache.path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM blobs")
    connection.close()
    assert load(cache, repo)[1] == 0


def test_count_hashes_empty_text_is_empty() -> None:
    """No tokens: two empty arrays, not a failure."""
    hashes, counts = count_hashes("")
    assert hashes.size == counts.size == 0


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
    """Nothing is counted; a line that moved is not a change."""
    assert count_changes(b"a b\nc", b"c\na b", count_runs) == {}
