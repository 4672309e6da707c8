"""BM25 without an index of the tree, against bm25s itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from coldrun.tasks.arms.base import Corpus, CorpusTree
from coldrun.tasks.arms.builtin import postings as postings_module
from coldrun.tasks.arms.builtin import segments as segments_module
from coldrun.tasks.arms.builtin.bm25_index import Bm25Index
from coldrun.tasks.arms.builtin.documents import CorpusReader, DocumentSet
from coldrun.tasks.arms.builtin.postings import Postings
from coldrun.tasks.arms.builtin.token_cache import TokenCache, hash_token
from coldrun.tasks.lib.git.object_reader import ObjectReader
from tests.arms.builtin.conftest import GitRepo

MakeRepo = Callable[..., GitRepo]
WORDS = ("alpha", "beta", "gamma_delta", "EpsilonZeta", "eta2", "theta", "the")


def write_history(repo: GitRepo, commits: int, seed: int) -> list[str]:
    """Commits that change, add, remove and duplicate files of random words."""
    source = random.Random(seed)
    names: list[str] = []
    hashes = []
    for number in range(commits):
        files: dict[str, str | None] = {
            f"src/{source.choice(WORDS)}_{number}_{n}.py": " ".join(
                source.choices(WORDS, k=source.randrange(0, 40))
            )
            for n in range(4)
        }
        if names:
            changed = source.choice(names)
            files[changed] = " ".join(source.choices(WORDS, k=20))
            files[f"copy/{number}.py"] = files[changed]
        if len(names) > 3:
            gone = source.choice(names)
            files[gone] = None
        hashes.append(repo.commit(files).commit)
        names = [name for name in {*names, *files} if files.get(name, "") is not None]
        names.sort()
    return hashes


def sets_at(repo: GitRepo, commit: str) -> tuple[DocumentSet, ...]:
    revision = repo.open().resolve(commit)
    tree = CorpusTree(git_dir=repo.open().git_dir, commit=commit, tree=revision.tree)
    return CorpusReader(Corpus(trees={".": tree})).list_trees()


@pytest.mark.parametrize("merge_below", [0, 3])
def test_score_trees_of_a_history_equals_bm25s_bit_for_bit(
    make_repo: MakeRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merge_below: int
) -> None:
    """One growing store scores every tree exactly as an index of that tree alone does."""
    monkeypatch.setattr(segments_module, "MERGE_BELOW", merge_below)
    repo = make_repo()
    cache = TokenCache(tmp_path)
    postings = Postings(cache)
    source = random.Random(1)
    for commit in write_history(repo, 8, seed=0):
        sets = sets_at(repo, commit)
        index = Bm25Index(sets, cache, k1=1.2, b=0.6)
        view = postings.view(sets)
        for _ in range(5):
            query = source.choices([*WORDS, "gamma", "epsilon", "absent"], k=6)
            tokens = [hash_token(word.lower()) for word in query]
            expected = index.score(tokens)
            got = view.score(tokens, k1=1.2, b=0.6)
            assert got.dtype == expected.dtype == np.float32
            assert got.tolist() == expected.tolist()
            assert expected.any()


def test_view_full_store_forgets_and_still_scores_the_same(
    make_repo: MakeRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the store starts again with the present tree; no score changes."""
    monkeypatch.setattr(postings_module, "MAXIMUM_ENTRIES", 0)
    repo = make_repo()
    cache = TokenCache(tmp_path)
    postings = Postings(cache)
    tokens = [hash_token("alpha"), hash_token("beta")]
    for commit in write_history(repo, 3, seed=4):
        sets = sets_at(repo, commit)
        got = postings.view(sets).score(tokens, k1=1.5, b=0.75)
        assert got.tolist() == Bm25Index(sets, cache, k1=1.5, b=0.75).score(tokens).tolist()


def test_score_tree_without_tokens_is_zero(make_repo: MakeRepo, tmp_path: Path) -> None:
    """A tree that is empty, or holds nothing but single characters, scores nothing."""
    repo = make_repo()
    cache = TokenCache(tmp_path)
    for files in ({}, {"a": "x = 1"}):
        sets = sets_at(repo, repo.commit(files).commit)
        count = len(sets[0].documents)
        assert Bm25Index(sets, cache, k1=1.5, b=0.75).score([1, 2]).tolist() == [0.0] * count
        assert Postings(cache).view(sets).score([1, 2], k1=1.5, b=0.75).tolist() == [0.0] * count


def test_view_failed_load_is_tried_again(
    make_repo: MakeRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blob that could not be read once is not taken for an empty one afterwards."""
    repo = make_repo(files={"a.py": "alpha", "b.py": "beta"})
    sets = sets_at(repo, repo.head.commit)
    postings = Postings(TokenCache(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(ObjectReader, "read_blobs", _fail)
        with pytest.raises(OSError, match="gone"):
            postings.view(sets)
    assert postings.view(sets).score([hash_token("alpha")], k1=1.5, b=0.75).tolist()[0] > 0


def _fail(*_: object, **__: object) -> None:
    raise OSError("gone")
