"""Private corpus copies and what sessions do to them."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from coldrun.tasks.arms.base import Corpus, CorpusTree
from coldrun.tasks.arms.workspace.corpora import (
    CorpusCopy,
    CorpusDrift,
    copy_corpus,
    describe_drift,
    inspect_copy,
    materialise_tree,
)
from coldrun.tasks.lib.errors import RepositoryError, UsageError
from coldrun.tasks.lib.git.repository import Repository

Build = Callable[..., "object"]


def tree_of(path: Path, revision: str = "HEAD") -> CorpusTree:
    """The tree of a commit in a repository."""
    repository = Repository.open(path)
    found = repository.resolve(revision)
    return CorpusTree(git_dir=repository.git_dir, commit=found.commit, tree=found.tree)


@pytest.fixture
def copied(new_repository: Build, tmp_path: Path) -> Callable[[dict[str, object]], CorpusCopy]:
    """A session's copy of a corpus of one commit with these files."""

    def copy(files: dict[str, object]) -> CorpusCopy:
        builder = new_repository("r")
        builder.commit(files=files)
        corpus = Corpus(trees={".": tree_of(builder.path)})
        return copy_corpus(corpus, scratch=tmp_path / "s", target=tmp_path / "c")

    return copy


def test_tree_is_written_as_raw_blobs(new_repository: Build, tmp_path: Path) -> None:
    """No filter, no line-end conversion and no `export-subst` touches a corpus."""
    builder = new_repository("r")
    builder.commit(
        files={
            ".gitattributes": "*.txt text eol=crlf ident export-subst\n*.md export-ignore\n",
            "a.txt": "one\n$Id$\n$Format:%H$\n",
            "b.md": "kept",
            "crlf.txt": "x\r\ny\r\n",
            "run.sh": ("100755", "#!/bin/sh\n"),
            "deep/er/c.py": b"\x00\xff",
            b"caf\xe9.py": "latin",
            "sub": ("160000", "1" * 40),
        }
    )
    folder = materialise_tree(tree_of(builder.path), tmp_path / "scratch")
    assert (folder / "a.txt").read_bytes() == b"one\n$Id$\n$Format:%H$\n"
    assert (folder / "b.md").read_text() == "kept"
    assert (folder / "crlf.txt").read_bytes() == b"x\r\ny\r\n"
    assert (folder / "deep/er/c.py").read_bytes() == b"\x00\xff"
    assert (folder / os.fsdecode(b"caf\xe9.py")).read_text() == "latin"
    assert os.access(folder / "run.sh", os.X_OK)
    assert not os.access(folder / "b.md", os.X_OK)
    assert list((folder / "sub").iterdir()) == []
    assert not (folder / ".git").exists()


def test_links_that_lead_outside_become_files(new_repository: Build, tmp_path: Path) -> None:
    """A link inside the corpus stays a link; one that leaves it is a file with its text."""
    builder = new_repository("r")
    builder.commit(
        files={
            "a/b.py": "x",
            "inside": ("120000", "a/b.py"),
            "folder": ("120000", "a"),
            "absolute": ("120000", "/etc/passwd"),
            "up": ("120000", "../../etc/passwd"),
            "a/round": ("120000", "../folder/../../../etc"),
            "gone": ("120000", "a/missing"),
            "self": ("120000", "self"),
        }
    )
    folder = materialise_tree(tree_of(builder.path), tmp_path / "scratch")
    assert (folder / "inside").is_symlink()
    assert (folder / "folder" / "b.py").read_text() == "x"
    assert (folder / "gone").is_symlink()
    assert (folder / "self").is_symlink()
    for name in ("absolute", "up", "a/round"):
        assert not (folder / name).is_symlink()
    assert (folder / "absolute").read_text() == "/etc/passwd"


def test_tree_with_a_dangerous_path_is_refused(new_repository: Build, tmp_path: Path) -> None:
    """A tree that git itself would refuse to check out is not exported."""
    builder = new_repository("r")
    blob = builder.git("hash-object", "-w", "--stdin", stdin=b"x")
    inner = builder.git("mktree", stdin=f"100644 blob {blob}\tconfig\n".encode())
    entry = f"40000 tree {inner}\t.GIT\n".encode()
    tree = builder.git("mktree", stdin=entry)
    wanted = CorpusTree(git_dir=builder.path / ".git", commit="0" * 40, tree=tree)
    with pytest.raises(RepositoryError, match=r"\.GIT/config"):
        materialise_tree(wanted, tmp_path / "scratch")


def test_unfinished_tree_is_written_again(new_repository: Build, tmp_path: Path) -> None:
    """A tree without its completion stamp does not count."""
    builder = new_repository("r")
    builder.commit(files={"a.py": "x", "b.py": "y"})
    tree = tree_of(builder.path)
    folder = materialise_tree(tree, tmp_path / "scratch")
    (folder / "a.py").unlink()
    (tmp_path / "scratch" / "corpora" / f"{tree.tree}.complete").unlink()
    assert (materialise_tree(tree, tmp_path / "scratch") / "a.py").read_text() == "x"


def test_tree_asked_for_by_many_is_written_once(new_repository: Build, tmp_path: Path) -> None:
    """Runs side by side wait for each other and end with one whole tree."""
    builder = new_repository("r")
    builder.commit(files={f"f{number}.py": str(number) for number in range(200)})
    tree = tree_of(builder.path)
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(materialise_tree(tree, tmp_path / "scratch")))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    assert len(list(found[0].iterdir())) == 200


def test_copies_are_independent(new_repository: Build, tmp_path: Path) -> None:
    """Writing into one copy reaches neither the pristine tree nor another copy."""
    builder = new_repository("r")
    builder.commit(files={"a.py": "x"})
    corpus = Corpus(trees={".": tree_of(builder.path)})
    one = copy_corpus(corpus, scratch=tmp_path / "scratch", target=tmp_path / "one")
    two = copy_corpus(corpus, scratch=tmp_path / "scratch", target=tmp_path / "two")
    (one.directory / "a.py").write_text("changed")
    assert (two.directory / "a.py").read_text() == "x"
    assert (two.directory / "a.py").stat().st_nlink == 1
    three = copy_corpus(corpus, scratch=tmp_path / "scratch", target=tmp_path / "three")
    assert (three.directory / "a.py").read_text() == "x"


def test_several_trees_lie_in_folders_of_their_names(new_repository: Build, tmp_path: Path) -> None:
    """Named trees are laid side by side; a name that is no folder's is refused."""
    trees = {}
    for name in ("svc-a", "svc-b"):
        builder = new_repository(name)
        builder.commit(files={"main.py": name})
        trees[name] = tree_of(builder.path)
    copy = copy_corpus(Corpus(trees=trees), scratch=tmp_path / "s", target=tmp_path / "c")
    assert (copy.directory / "svc-b" / "main.py").read_text() == "svc-b"
    (copy.directory / "svc-a" / "main.py").write_text("other")
    assert inspect_copy(copy) == CorpusDrift(changed=("svc-a/main.py",))
    with pytest.raises(UsageError, match="cannot be laid out"):
        copy_corpus(
            Corpus(trees={"a/b": trees["svc-a"], "c": trees["svc-b"]}),
            scratch=tmp_path / "s",
            target=tmp_path / "d",
        )


def test_touched_files_are_told_apart(copied: Callable[..., CorpusCopy]) -> None:
    """Changed, removed and new files are found; a rewrite of the same bytes is no change."""
    names = ("same", "content", "gone", "mode", "restored", "untouched", "timed")
    copy = copied({**dict.fromkeys(names, "text"), "link": ("120000", "same")})
    folder = copy.directory
    assert inspect_copy(copy) == CorpusDrift()
    (folder / "same").write_text("text")
    (folder / "content").write_text("TEXT")
    (folder / "gone").unlink()
    (folder / "mode").chmod(0o755)
    (folder / "restored").unlink()
    (folder / "restored").write_text("text")
    before = (folder / "timed").stat()
    (folder / "timed").write_text("TEXT")
    os.utime(folder / "timed", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "link").unlink()
    (folder / "link").symlink_to("gone")
    (folder / ".index").mkdir()
    (folder / ".index" / "db").write_text("x")
    assert inspect_copy(copy) == CorpusDrift(
        changed=("content", "link", "mode", "timed"), removed=("gone",), added=(".index/db",)
    )


def test_drift_is_described() -> None:
    """Changes and removals make a run invalid; new files are a warning unless they are allowed."""
    drift = CorpusDrift(
        changed=tuple(f"f{number}" for number in range(7)), removed=("r",), added=(".idx/a", "b")
    )
    invalid, warnings = describe_drift(drift)
    assert "changed 7 files (f0, f1, f2, f3, f4 and 2 more)" in invalid[0]
    assert "removed 1 file (r)" in invalid[1]
    assert "2 files (.idx/a, b)" in warnings[0]
    assert "1 file (b)" in describe_drift(drift, allowed_writes=[".idx/"])[1][0]
    assert describe_drift(drift, allowed_writes=["*"])[1] == ()


def test_corpus_has_no_repository_around_it(copied: Callable[..., CorpusCopy]) -> None:
    """Git finds nothing in a copy or above it."""
    copy = copied({"a.py": "x"})
    done = subprocess.run(
        ["git", "log"], cwd=copy.directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 128
    assert "not a git repository" in done.stderr
