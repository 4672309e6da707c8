"""Counting substrings in distinct runs, against counting them in the text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from coldrun.tasks.arms.base import Corpus, CorpusTree
from coldrun.tasks.arms.builtin import word_store as word_store_module
from coldrun.tasks.arms.builtin.documents import CorpusReader, DocumentSet
from coldrun.tasks.arms.builtin.word_store import WordStore
from coldrun.tasks.lib.git.object_reader import ObjectReader
from tests.arms.builtin.conftest import GitRepo

MakeRepo = Callable[..., GitRepo]
texts = st.lists(st.text(st.sampled_from("aAbBß_ \n.İé0"), max_size=40), max_size=6)
words = st.text(st.sampled_from("abß_é0"), min_size=1, max_size=4)


def count_slowly(text: str, word: str) -> int:
    return text.lower().count(word)


def sets_at(repo: GitRepo) -> tuple[DocumentSet, ...]:
    head = repo.head
    tree = CorpusTree(git_dir=repo.open().git_dir, commit=head.commit, tree=head.tree)
    return CorpusReader(Corpus(trees={".": tree})).list_trees()


@pytest.mark.parametrize(("limit", "chain"), [(0, 40), (10**9, 40), (10**9, 2)])
def test_view_trees_of_a_history_count_as_their_files_do(
    make_repo: MakeRepo, monkeypatch: pytest.MonkeyPatch, limit: int, chain: int
) -> None:
    """One growing store counts every tree as reading its files does, even when it forgets."""
    monkeypatch.setattr(word_store_module, "MAXIMUM_ENTRIES", limit)
    monkeypatch.setattr(word_store_module, "LONGEST_CHAIN", chain)
    repo, store = make_repo(), WordStore()
    for number in range(8):
        content = f"Word{number} sub-word in_words\n" * number
        longer = "".join(f"line {n} of Words{n % 3}\n" for n in range(number, 2 * number))
        repo.commit(
            {f"f{number}.py": content, "same.py": content, "grow.py": longer, "bin": b"word\0"}
        )
        sets = sets_at(repo)
        view = store.view(sets)
        for word in ("word", f"word{number}", "absent"):
            expected = [
                0 if each.path == "bin" else count_slowly((repo.path / each.path).read_text(), word)
                for each in sets[0].documents
            ]
            assert view.count(word).tolist() == expected
        assert store.count_unread(sets) == (1, 0)


def test_view_failed_read_is_tried_again(
    make_repo: MakeRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blob that could not be read once is not taken for an empty one afterwards."""
    repo, store = make_repo(files={"a.py": "word"}), WordStore()
    with monkeypatch.context() as patch:
        patch.setattr(ObjectReader, "read_blobs", _fail)
        with pytest.raises(OSError, match="gone"):
            store.view(sets_at(repo))
    assert store.view(sets_at(repo)).count("word").tolist() == [1]


def _fail(*_: object, **__: object) -> None:
    raise OSError("gone")
