"""What the built-in arms search: the files of a corpus, listed from git without a check-out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tasks.arms.base import Corpus
from tasks.errors import UsageError
from tasks.git.repository import Repository


@dataclass(frozen=True, slots=True)
class Document:
    """One file of a corpus.

    `tree` names the tree it is in ("." for the only one). `blob` is None for what is listed but
    not read: symbolic links, whose content is a path and not a text.
    """

    tree: str
    path: str
    blob: str | None


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The documents of one tree, sorted by path, and the repository that has their blobs."""

    repository: Repository
    documents: tuple[Document, ...]

    @property
    def blobs(self) -> list[str]:
        """The distinct blobs to read."""
        return list(dict.fromkeys(each.blob for each in self.documents if each.blob is not None))


class CorpusReader:
    """Lists the documents of a corpus, and of the base commit of a task that has its own.

    Raises:
        RepositoryError: A repository cannot be opened.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._trees = {name: tree.tree for name, tree in sorted(corpus.trees.items())}
        self._repositories: Mapping[str, Repository] = {
            name: Repository.open(corpus.trees[name].git_dir) for name in self._trees
        }

    @property
    def tree_names(self) -> tuple[str, ...]:
        """The names of the trees, sorted; empty when the panel has no corpus."""
        return tuple(self._trees)

    @property
    def git_dirs(self) -> tuple[str, ...]:
        """The git directories that are read, sorted."""
        return tuple(sorted({str(each.git_dir) for each in self._repositories.values()}))

    def list_trees(self) -> tuple[DocumentSet, ...]:
        """The documents of every tree, in the order of `tree_names`.

        Raises:
            RepositoryError: A tree cannot be read.
        """
        return tuple(self._list(name, tree) for name, tree in self._trees.items())

    def list_base(self, base: str) -> tuple[DocumentSet, ...]:
        """The documents of a task's own base commit.

        Raises:
            RepositoryError: The commit cannot be read.
            UsageError: The corpus has not exactly one tree, so the commit could be anywhere.
        """
        if len(self._trees) != 1:
            raise UsageError(
                f"the task has a base of its own ({base}), which takes a corpus of one tree; "
                f"this one has {len(self._trees)}"
            )
        return (self._list(self.tree_names[0], base),)

    def _list(self, name: str, tree: str) -> DocumentSet:
        repository = self._repositories[name]
        documents = (
            Document(name, entry.path, entry.object_id if entry.kind == "file" else None)
            for entry in repository.list_tree(tree)
            if entry.kind != "submodule"
        )
        return DocumentSet(repository, tuple(sorted(documents, key=lambda each: each.path)))


def join_documents(sets: Iterable[DocumentSet]) -> tuple[Document, ...]:
    """All documents of a corpus, by tree and then by path."""
    return tuple(document for each in sets for document in each.documents)
