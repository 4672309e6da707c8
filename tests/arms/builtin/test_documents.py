"""Listing trees from raw objects, against git's own listing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from coldrun.tasks.arms.base import Corpus, CorpusTree
from coldrun.tasks.arms.builtin.documents import CorpusReader, Document
from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.object_reader import ObjectReader
from tests.arms.builtin.conftest import GitRepo

MakeRepo = Callable[..., GitRepo]


def reader_at_head(repo: GitRepo) -> CorpusReader:
    head = repo.head
    tree = CorpusTree(git_dir=repo.open().git_dir, commit=head.commit, tree=head.tree)
    return CorpusReader(Corpus(trees={".": tree}))


def test_list_base_every_commit_equals_git_ls_tree(make_repo: MakeRepo) -> None:
    """Folders, links, modes and names of any bytes come out as git itself lists them."""
    repo = make_repo(files={"a/b/c.py": "1", "a.py": "2", "a-b": "3", "é/ü.py": "4"})
    (repo.path / "link").symlink_to("a.py")
    (repo.path / "n\udcff").write_text("5")
    (repo.path / "a.py").chmod(0o755)
    repo.commit({"a/b/d.py": "6"})
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head.commit},module")
    repo.git("commit", "-q", "-m", "module")
    commits = repo.git("rev-list", "HEAD").split()
    assert len(commits) == 3
    reader = reader_at_head(repo)
    for commit in commits:
        (got,) = reader.list_base(commit)
        expected = [
            Document(".", entry.path, entry.object_id if entry.kind == "file" else None)
            for entry in repo.open().list_tree(commit)
            if entry.kind != "submodule"
        ]
        assert list(got.documents) == sorted(expected, key=lambda each: each.path)
    assert reader.list_trees()[0].documents == reader.list_base(commits[0])[0].documents
    reader.close()


def test_read_blobs_order_limit_and_threads(make_repo: MakeRepo) -> None:
    """Contents come in the order asked, those above the limit as None, for threads at once."""
    contents = {f"f{n}": b"x" * (n * 7000) + b"\n\0" for n in range(250)}
    repo = make_repo(files=contents)
    ids = {e.path: e.object_id for e in repo.open().list_tree("HEAD")}
    names = sorted(contents, reverse=True)
    objects = ObjectReader(repo.open().git_dir)
    limit = 700_002

    def work(_: int) -> list[bytes | None]:
        got = list(objects.read_blobs([ids[name] for name in names], limit_bytes=limit))
        assert [blob for blob, _ in got] == [ids[name] for name in names]
        return [content for _, content in got]

    expected = [contents[name] if len(contents[name]) <= limit else None for name in names]
    with ThreadPoolExecutor(3) as pool:
        for got in pool.map(work, range(3)):
            assert got == expected
    objects.close()


def test_read_blobs_missing_object_is_named_and_later_reads_go_on(make_repo: MakeRepo) -> None:
    """One object that is not there does not shift the answers to the others."""
    repo = make_repo(files={"a": "one", "b": "two"})
    ids = [entry.object_id for entry in repo.open().list_tree("HEAD")]
    objects = ObjectReader(repo.open().git_dir)
    with pytest.raises(RepositoryError, match="f" * 40):
        list(objects.read_blobs([ids[0], "f" * 40, ids[1]]))
    assert [content for _, content in objects.read_blobs(ids)] == [b"one", b"two"]
    objects.close()


def test_read_blobs_after_close_or_death_starts_git_again(make_repo: MakeRepo) -> None:
    """Sessions share a reader, so the end of one, or of git, is not the end of the others."""
    repo = make_repo(files={"a": "one"})
    (entry,) = repo.open().list_tree("HEAD")
    objects = ObjectReader(repo.open().git_dir)
    before = set(psutil.Process().children(recursive=True))
    assert objects.read_tree("HEAD")[0].object_id == entry.object_id
    for process in set(psutil.Process().children(recursive=True)) - before:
        process.kill()
        process.wait()
    with pytest.raises(RepositoryError, match="cat-file ended"):
        objects.read_tree("HEAD")
    for _ in range(2):
        assert list(objects.read_blobs([entry.object_id])) == [(entry.object_id, b"one")]
        objects.close()
        objects.close()


def test_read_blobs_remembers_the_latest_up_to_its_capacity(make_repo: MakeRepo) -> None:
    """What is remembered is not read again, and a limit holds for it all the same."""
    repo = make_repo(files={"a": b"x" * 60, "b": b"y" * 60})
    first, second = (entry.object_id for entry in repo.open().list_tree("HEAD"))
    objects = ObjectReader(repo.open().git_dir, remember_bytes=100)
    for asked in ([first, second], [second, first], [second, second, first]):
        got = dict(objects.read_blobs(asked))
        assert got == {first: b"x" * 60, second: b"y" * 60}
    assert list(objects.read_blobs([first, second], limit_bytes=50)) == [
        (first, None),
        (second, None),
    ]
    read, again = (dict(objects.read_blobs([first]))[first] for _ in range(2))
    assert read is again
    objects.close()


def test_read_tree_empty_tree_has_no_entries(make_repo: MakeRepo) -> None:
    """The tree of a commit without files is empty, not an error."""
    repo = make_repo()
    commit = repo.commit({}).commit
    objects = ObjectReader(repo.open().git_dir)
    assert objects.read_tree(commit) == ()
    objects.close()
