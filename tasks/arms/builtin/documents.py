"""What the built-in arms search: the files of a corpus, listed from git without a check-out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from coldrun.tasks.arms.base import Corpus, CorpusTree
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.git.object_reader import ObjectReader
from coldrun.tasks.lib.git.path_text import encode_path

FOLDER_MODE = "040000"
LINK_MODE = "120000"
SUBMODULE_MODE = "160000"

REMEMBERED_BYTES = 32 * 1024 * 1024
"""Of file contents, per tree: arms that search the same versions read them once."""


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
    """The documents of one tree, sorted by path, and what reads their blobs.

    `name` is that of the tree in its corpus, `commit` the one whose tree it is.
    """

    objects: ObjectReader
    documents: tuple[Document, ...]
    name: str = "."
    commit: str = ""

    @property
    def blobs(self) -> list[str]:
        """The distinct blobs to read."""
        return list(dict.fromkeys(each.blob for each in self.documents if each.blob is not None))


class CorpusReader:
    """Lists the documents of a corpus, and of the base commit of a task that has its own.

    Sessions may share one; what one of them closes is opened again for the others.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._listers = {
            name: _TreeLister(name, corpus.trees[name]) for name in sorted(corpus.trees)
        }

    @property
    def tree_names(self) -> tuple[str, ...]:
        """The names of the trees, sorted; empty when the panel has no corpus."""
        return tuple(self._listers)

    @property
    def git_dirs(self) -> tuple[str, ...]:
        """The git directories that are read, sorted."""
        return tuple(sorted({str(each.objects.git_dir) for each in self._listers.values()}))

    def list_trees(self) -> tuple[DocumentSet, ...]:
        """The documents of every tree, in the order of `tree_names`.

        Raises:
            RepositoryError: A tree cannot be read.
        """
        return tuple(lister.list(lister.tree.commit) for lister in self._listers.values())

    def list_base(self, base: str) -> tuple[DocumentSet, ...]:
        """The documents of a task's own base commit.

        Raises:
            RepositoryError: The commit cannot be read.
            UsageError: The corpus has not exactly one tree, so the commit could be anywhere.
        """
        if len(self._listers) != 1:
            raise UsageError(
                f"the task has a base of its own ({base}), which takes a corpus of one tree; "
                f"this one has {len(self._listers)}"
            )
        (lister,) = self._listers.values()
        return (lister.list(base),)

    def close(self) -> None:
        """End the processes that read the repositories. Safe to call twice."""
        for lister in self._listers.values():
            lister.objects.close()


class _TreeLister:
    """Lists trees of one repository; folders that several trees share are read once."""

    def __init__(self, name: str, tree: CorpusTree) -> None:
        self.tree = tree
        self.objects = ObjectReader(
            tree.git_dir, hex_length=len(tree.tree), remember_bytes=REMEMBERED_BYTES
        )
        self._name = name
        self._folders: dict[tuple[str, bytes], tuple[Document, ...]] = {}

    def list(self, commit: str) -> DocumentSet:
        """The documents of a commit."""
        files = sorted(self._list_folder(commit, b""), key=lambda each: each.path)
        return DocumentSet(self.objects, tuple(files), self._name, commit)

    def _list_folder(self, name: str, prefix: bytes) -> tuple[Document, ...]:
        known = self._folders.get((name, prefix))
        if known is not None:
            return known
        documents: list[Document] = []
        for item in self.objects.read_tree(name):
            path = prefix + item.name
            if item.mode == FOLDER_MODE:
                documents += self._list_folder(item.object_id, path + b"/")
            elif item.mode != SUBMODULE_MODE:
                blob = None if item.mode == LINK_MODE else item.object_id
                documents.append(Document(self._name, encode_path(path), blob))
        self._folders[name, prefix] = tuple(documents)
        return self._folders[name, prefix]


class Versions:
    """Which blob was last seen at a path: most likely an earlier version of a new one there."""

    def __init__(self) -> None:
        self._blobs: dict[tuple[str, str], str] = {}

    def earlier(self, seen: DocumentSet, blobs: Iterable[str]) -> dict[str, str]:
        """For those of the blobs whose path held another one before, that one."""
        wanted = set(blobs)
        return {
            each.blob: self._blobs[each.tree, each.path]
            for each in seen.documents
            if each.blob in wanted and (each.tree, each.path) in self._blobs
        }

    def see(self, sets: Iterable[DocumentSet]) -> None:
        """Remember what is at each path now."""
        for document in join_documents(sets):
            if document.blob is not None:
                self._blobs[document.tree, document.path] = document.blob


def read_versions(
    objects: ObjectReader, blobs: Iterable[str], earlier: Mapping[str, str], *, limit_bytes: int
) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """Blobs with their contents and those of their earlier versions, asked for together.

    A content is None above the limit; that of the earlier version also where no such version is
    known.

    Raises:
        RepositoryError: An object is missing.
    """
    wanted = list(blobs)
    asked = (each for blob in wanted for each in (earlier.get(blob), blob) if each is not None)
    contents = objects.read_blobs(asked, limit_bytes=limit_bytes)
    for blob in wanted:
        old = next(contents)[1] if blob in earlier else None
        yield blob, next(contents)[1], old


def join_documents(sets: Iterable[DocumentSet]) -> tuple[Document, ...]:
    """All documents of a corpus, by tree and then by path."""
    return tuple(document for each in sets for document in each.documents)
