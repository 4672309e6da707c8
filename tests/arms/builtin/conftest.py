"""Real git repositories for the built-in arms."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from coldrun.tasks.arms.base import Corpus, CorpusTree
from coldrun.tasks.arms.builtin.documents import CorpusReader, DocumentSet
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Revision

Files = Mapping[str, bytes | str | None]


@dataclass(frozen=True)
class GitRepo:
    """A repository in a temporary folder that a test writes commits to."""

    path: Path
    clock: Iterator[int] = field(default_factory=lambda: count(1_600_000_000))

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            check=True,
            capture_output=True,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.path),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_AUTHOR_NAME": "A",
                "GIT_AUTHOR_EMAIL": "a@example.org",
                "GIT_COMMITTER_NAME": "A",
                "GIT_COMMITTER_EMAIL": "a@example.org",
                "GIT_COMMITTER_DATE": f"{next(self.clock)} +0000",
            },
        )
        return done.stdout.strip()

    def commit(self, files: Files, message: str = "change") -> Revision:
        """Write files (None removes one) and commit them."""
        for name, content in files.items():
            target = self.path / name
            if content is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> Revision:
        return self.open().resolve("HEAD")

    def open(self) -> Repository:
        return Repository.open(self.path)


def sets_at(repo: GitRepo, revision: str = "HEAD") -> tuple[DocumentSet, ...]:
    """The documents of a commit."""
    found = repo.open().resolve(revision)
    tree = CorpusTree(git_dir=repo.open().git_dir, commit=found.commit, tree=found.tree)
    return CorpusReader(Corpus(trees={".": tree})).list_trees()


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[..., GitRepo]:
    """A factory of repositories with one commit."""

    def make(name: str = "repo", files: Files | None = None) -> GitRepo:
        path = tmp_path / name
        path.mkdir()
        repo = GitRepo(path)
        repo.git("init", "--quiet", "--initial-branch=main")
        if files:
            repo.commit(files)
        return repo

    return make
