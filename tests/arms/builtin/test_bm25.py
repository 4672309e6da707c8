"""BM25 without an index of the tree, against bm25s itself."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest

from coldrun.tasks.arms.builtin import unit_counts
from coldrun.tasks.arms.builtin.bm25 import Bm25Store, Scores
from coldrun.tasks.arms.builtin.documents import DocumentSet
from coldrun.tasks.arms.builtin.token_cache import TokenCache, hash_token
from coldrun.tasks.lib.git.object_reader import ObjectReader
from coldrun.tasks.lib.tokens import tokenize
from tests.arms.builtin.conftest import GitRepo, sets_at

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
            files[source.choice(names)] = None
        hashes.append(repo.commit(files).commit)
        names = [name for name in {*names, *files} if files.get(name, "") is not None]
        names.sort()
    return hashes


def score_slowly(
    texts: Sequence[Sequence[str]], query: Sequence[str], *, k1: float, b: float
) -> list[float]:
    """The scores that an index of these texts alone gives."""
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    vocabulary = {token: number for number, token in enumerate(sorted(set().union(*texts)))}
    index = bm25s.BM25(method="lucene", k1=k1, b=b, backend="numpy", csc_backend="scipy")
    ids = [[vocabulary[token] for token in text] for text in texts]
    corpus = bm25s.tokenization.Tokenized(ids=ids, vocab=vocabulary)
    index.index(corpus, create_empty_token=False, show_progress=False)
    asked = [vocabulary[token] for token in query if token in vocabulary]
    scores: list[float] = index.get_scores_from_ids(asked).tolist()
    return scores


def score(
    store: Bm25Store, sets: Sequence[DocumentSet], query: Sequence[str]
) -> tuple[Scores, Scores]:
    """The scores of contents and of paths."""
    tokens = [hash_token(word) for word in query]
    tree = store.open_tree(sets, k1=1.2, b=0.6, path_weight=1)
    return tree.score(tokens, tree.contents), tree.score(tokens, tree.paths)


@pytest.mark.parametrize(("merge_below", "limit"), [(0, 10**9), (3, 10**9), (3, 0)])
def test_score_trees_of_a_history_equals_bm25s_bit_for_bit(
    make_repo: MakeRepo,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    merge_below: int,
    limit: int,
) -> None:
    """One growing store scores every tree exactly as an index of that tree alone does, also when
    it is full and forgets."""
    monkeypatch.setattr(unit_counts, "MERGE_BELOW", merge_below)
    monkeypatch.setattr(unit_counts, "MAXIMUM_ENTRIES", limit)
    repo = make_repo()
    store = Bm25Store(TokenCache(tmp_path))
    source = random.Random(1)
    for commit in write_history(repo, 6, seed=0):
        sets = sets_at(repo, commit)
        for _ in range(3):
            query = source.choices(["alpha", "beta", "gamma", "epsilon", "eta2", "absent"], k=6)
            got = score(store, sets, query)
            contents = [tokenize(repo.git("show", each.blob or "")) for each in sets[0].documents]
            paths = [tokenize(each.path) for each in sets[0].documents]
            for scores, texts in zip(got, (contents, paths), strict=True):
                assert scores.dtype == np.float32
                assert scores.any()
                assert scores.tolist() == score_slowly(texts, query, k1=1.2, b=0.6)


def test_search_adds_the_weighted_score_of_the_path(make_repo: MakeRepo, tmp_path: Path) -> None:
    """A file that is called what is asked for comes before one that only mentions it."""
    repo = make_repo()
    files = {"parser.py": "nothing of it", "other.py": "the parser and the parser"}
    sets = sets_at(repo, repo.commit(files).commit)
    store = Bm25Store(TokenCache(tmp_path))
    found = {}
    for weight in (0.0, 3.0):
        tree = store.open_tree(sets, k1=1.5, b=0.75, path_weight=weight)
        found[weight] = [hit.path for hit in tree.search("parser")]
    assert found == {0.0: ["other.py"], 3.0: ["parser.py", "other.py"]}


def test_score_tree_without_tokens_is_zero(make_repo: MakeRepo, tmp_path: Path) -> None:
    """A tree that is empty, or holds nothing but single characters, scores nothing."""
    repo = make_repo()
    for files in ({}, {"a": "x = 1"}):
        sets = sets_at(repo, repo.commit(files).commit)
        got, _ = score(Bm25Store(TokenCache(tmp_path)), sets, ["alpha"])
        assert got.tolist() == [0.0] * len(sets[0].documents)


def test_open_tree_failed_load_is_tried_again(
    make_repo: MakeRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blob that could not be read once is not taken for an empty one afterwards."""
    repo = make_repo(files={"a.py": "alpha", "b.py": "beta"})
    sets = sets_at(repo)
    store = Bm25Store(TokenCache(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(ObjectReader, "read_blobs", _fail)
        with pytest.raises(OSError, match="gone"):
            score(store, sets, ["alpha"])
    assert score(store, sets, ["alpha"])[0].tolist()[0] > 0


def _fail(*_: object, **__: object) -> None:
    raise OSError("gone")
