"""The token cache over real repositories."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coldrun.tasks.arms.builtin.token_cache import (
    HUGE_BYTES,
    LoadedTokens,
    TokenCache,
    count_hashes,
    hash_token,
)
from coldrun.tasks.lib.errors import StorageError
from coldrun.tasks.lib.git.object_reader import ObjectReader
from coldrun.tasks.lib.git.repository import Repository
from tests.arms.builtin.conftest import GitRepo

MakeRepo = Callable[..., GitRepo]


def load(cache: TokenCache, repo: GitRepo, revision: str = "HEAD") -> LoadedTokens:
    entries = repo.open().list_tree(revision)
    return cache.load(ObjectReader(repo.open().git_dir), [entry.object_id for entry in entries])


def load_in_process(scratch: Path, path: Path) -> int:
    repository = Repository.open(path)
    blobs = [entry.object_id for entry in repository.list_tree("HEAD")]
    return len(TokenCache(scratch).load(ObjectReader(repository.git_dir), blobs).by_blob)


def test_load_new_blobs_counts_their_tokens(make_repo: MakeRepo, tmp_path: Path) -> None:
    """Counts are those of the text, by hash in ascending order."""
    repo = make_repo(files={"a.py": "def get_default(): return DefaultMap"})
    got = load(TokenCache(tmp_path), repo)
    (tokens,) = got.by_blob.values()
    counted = dict(zip(tokens.hashes.tolist(), tokens.counts.tolist(), strict=True))
    assert counted[hash_token("default")] == 2
    assert counted[hash_token("get_default")] == 1
    assert list(counted) == sorted(counted)
    assert (got.tokenized, got.binary, got.huge) == (1, 0, 0)


def test_load_known_blobs_reads_nothing_again(make_repo: MakeRepo, tmp_path: Path) -> None:
    """A later corpus pays only for what is new in it, in a new process too."""
    repo = make_repo(files={f"f{n}.py": f"word{n}" for n in range(20)})
    first = load(TokenCache(tmp_path), repo)
    repo.commit({"f0.py": "changed"})
    second = load(TokenCache(tmp_path), repo)
    assert (first.tokenized, second.tokenized) == (20, 1)
    shared = first.by_blob.keys() & second.by_blob.keys()
    assert len(shared) == 19
    for blob in shared:
        assert first.by_blob[blob].hashes.tolist() == second.by_blob[blob].hashes.tolist()
        assert first.by_blob[blob].counts.tolist() == second.by_blob[blob].counts.tolist()


def test_load_binary_and_huge_blobs_are_counted_and_hold_nothing(
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
    for tokenized in (6, 0):
        got = load(TokenCache(tmp_path), repo)
        assert (got.tokenized, got.binary, got.huge) == (tokenized, 1, 1)
        by_path = {
            entry.path: got.by_blob[entry.object_id].hashes.tolist()
            for entry in repo.open().list_tree("HEAD")
        }
        word = hash_token("word")
        assert {path for path, hashes in by_path.items() if word in hashes} == {
            "late",
            "limit",
            "latin",
        }


def test_load_two_processes_at_once_agree(make_repo: MakeRepo, tmp_path: Path) -> None:
    """Processes that fill the same cache wait for each other instead of failing."""
    repo = make_repo(files={f"f{n}.py": f"word{n} " * 200 for n in range(600)})
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        counts = pool.starmap(load_in_process, [(tmp_path, repo.path)] * 2)
    assert counts == [600, 600]
    assert load(TokenCache(tmp_path), repo).tokenized == 0


def test_load_many_threads_at_once_agree(make_repo: MakeRepo, tmp_path: Path) -> None:
    """One cache object serves threads that start together."""
    repo = make_repo(files={f"f{n}.py": f"word{n}" for n in range(50)})
    cache = TokenCache(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: load(cache, repo), range(8)))
    assert all(result.by_blob.keys() == results[0].by_blob.keys() for result in results)


def test_load_damaged_cache_says_what_to_delete(make_repo: MakeRepo, tmp_path: Path) -> None:
    """A file that is no database is named, with what to do about it."""
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
    assert load(cache, repo).tokenized == 0


def test_count_hashes_empty_text_is_empty() -> None:
    """No tokens: two empty arrays, not a failure."""
    hashes, counts = count_hashes("")
    assert hashes.size == counts.size == 0
