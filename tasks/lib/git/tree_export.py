"""A tree on disk as its raw blobs, with no repository and nothing that leads outside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.object_reader import ObjectReader
from coldrun.tasks.lib.git.repository import Repository, TreeEntry

EXECUTABLE = "100755"


def export_tree(git_dir: Path, tree: str, target: Path) -> int:
    """Write the raw blobs of a tree below `target`, unfiltered; gives the number of entries.

    A link that would lead outside becomes a plain file with its text, a submodule a folder.
    """
    repository = Repository(git_dir)
    entries = repository.list_tree(tree)
    for entry in entries:
        _refuse_unsafe(entry, tree)
    target.mkdir(parents=True)
    folders = {target}
    links: list[tuple[Path, bytes]] = []
    files = [entry for entry in entries if entry.kind != "submodule"]
    with closing(ObjectReader(git_dir, hex_length=len(tree))) as objects:
        blobs = objects.read_blobs(entry.object_id for entry in files)
        for entry, (_, found) in zip(files, blobs, strict=True):
            content = found or b""
            path = target / os.fsdecode(entry.raw_path)
            if path.parent not in folders:
                path.parent.mkdir(parents=True, exist_ok=True)
                folders.add(path.parent)
            if entry.kind == "symlink":
                links.append((path, content))
            else:
                _write_new(path, content, 0o755 if entry.mode == EXECUTABLE else 0o644)
    _write_links(target, links)
    for entry in entries:
        if entry.kind == "submodule":
            (target / os.fsdecode(entry.raw_path)).mkdir(parents=True, exist_ok=True)
    return len(entries)


def _refuse_unsafe(entry: TreeEntry, tree: str) -> None:
    parts = entry.raw_path.split(b"/")
    if any(part in (b"", b".", b"..") or part.lower() == b".git" for part in parts):
        raise RepositoryError(
            f"tree {tree} holds the path {entry.path!r}, which no corpus may have; choose a base "
            "whose tree passes `git fsck`"
        )


def _write_new(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _write_links(target: Path, links: Sequence[tuple[Path, bytes]]) -> None:
    made = []
    for path, text in links:
        if text and b"\0" not in text:
            path.symlink_to(os.fsdecode(text))
            made.append((path, text))
        else:
            _write_new(path, text, 0o644)
    inside = target.resolve()
    for path, text in made:
        # not Path.resolve, which raises where links go round in a circle
        leads_to = Path(os.path.realpath(path))
        if text.startswith(b"/") or not leads_to.is_relative_to(inside):
            path.unlink()
            _write_new(path, text, 0o644)
