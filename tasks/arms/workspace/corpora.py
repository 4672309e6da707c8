"""Private copies of the corpus: raw blobs, no repository in or around them, checked afterwards."""

from __future__ import annotations

import fcntl
import filecmp
import json
import os
import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from coldrun.tasks.arms.base import Corpus, CorpusTree
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.git.tree_export import export_tree
from coldrun.tasks.lib.machine.file_locks import hold_lock
from coldrun.tasks.lib.machine.files import remove_folder, write_whole
from coldrun.tasks.lib.machine.tree_digest import FileState, digest_states, list_states
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.lib.safe_json import load_object

FIXED_TIME_SECONDS = 1_000_000_000
"""Modification time of every corpus file, so that no tool sees when its copy was made."""

FICLONE = 0x40049409
"""The Linux request that shares a file's blocks with its copy until one of them is changed."""

NAMED_FILES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusCopy:
    """A session's own copy of the corpus. `originals` maps each tree's folder to its pristine one.

    With one tree named ".", `directory` is that tree; else it holds one folder per name.
    """

    directory: Path
    originals: Mapping[Path, Path]
    states: Mapping[str, FileState]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusDrift:
    """What a session did to its copy; relative paths, sorted."""

    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def materialise_tree(tree: CorpusTree, scratch: Path) -> Path:
    """The pristine folder of a tree below `scratch`, written once and kept by tree id.

    It counts only with its completion stamp, which is written last, and as long as no file in it
    was touched; anything else is removed and written again. Callers never change it.
    """
    corpora = scratch.resolve() / "corpora"
    target = corpora / tree.tree
    stamp = corpora / f"{tree.tree}.complete"
    with hold_lock(corpora / f"{tree.tree}.lock"):
        if _is_pristine(target, stamp):
            stamp.touch()
            return target
        stamp.unlink(missing_ok=True)
        remove_folder(target)
        for leftover in corpora.glob(f"{tree.tree}.*.partial"):
            shutil.rmtree(leftover, ignore_errors=True)
        partial = corpora / f"{tree.tree}.{secrets.token_hex(4)}.partial"
        try:
            entries = export_tree(tree.git_dir, tree.tree, partial)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        content = {
            "tree": tree.tree,
            "entries": entries,
            "states": digest_states(list_states(target)),
        }
        write_whole(stamp, json.dumps(content).encode() + b"\n")
    return target


def _is_pristine(target: Path, stamp: Path) -> bool:
    try:
        known = load_object(stamp.read_bytes())
    except (OSError, ValueError):
        return False
    return target.is_dir() and known.get("states") == digest_states(list_states(target))


def copy_corpus(corpus: Corpus, *, scratch: Path, target: Path) -> CorpusCopy:
    """Copy every tree of a corpus below `target`, which must not exist, for one session.

    Files are copied (sharing blocks where the file system can), never linked, so no session can
    reach the pristine tree or another session's copy.

    Raises:
        UsageError: A tree's name is not the name of a folder.
    """
    originals = {
        target / name: materialise_tree(corpus.trees[name], scratch)
        for name in _folder_names(corpus)
    }
    target.mkdir(parents=True)
    for folder, original in originals.items():
        folder.mkdir(exist_ok=True)
        _copy_folder(os.fspath(original), os.fspath(folder))
    return CorpusCopy(directory=target, originals=originals, states=dict(list_states(target)))


def _folder_names(corpus: Corpus) -> list[str]:
    """The names of the trees, sorted; refuses those that cannot lie side by side as folders."""
    names = sorted(corpus.trees)
    for name in names:
        if name != "." and (name in ("", "..") or "/" in name or "\0" in name):
            raise UsageError(
                f"the corpus tree {name!r} cannot be laid out as a folder; choose a name without "
                "slashes"
            )
    if "." in names and len(names) > 1:
        raise UsageError('a corpus of several trees cannot have one named "."')
    return names


def _copy_folder(source: str, target: str) -> None:
    """Copy the content of `source` into the existing `target`."""
    with os.scandir(source) as entries:
        for entry in entries:
            path = f"{target}/{entry.name}"
            if entry.is_symlink():
                Path(path).symlink_to(Path(entry.path).readlink())
                os.utime(path, (FIXED_TIME_SECONDS, FIXED_TIME_SECONDS), follow_symlinks=False)
            elif entry.is_dir():
                Path(path).mkdir()
                _copy_folder(entry.path, path)
            else:
                _copy_file(entry.path, path)


def _copy_file(place: str, path: str) -> None:
    """Copy a file with its mode, its blocks shared where that is possible."""
    with open(place, "rb") as source, open(path, "wb", buffering=0) as target:  # noqa: PTH123
        try:
            fcntl.ioctl(target.fileno(), FICLONE, source.fileno())
        except OSError:
            shutil.copyfileobj(source, target)
        os.fchmod(target.fileno(), stat.S_IMODE(os.fstat(source.fileno()).st_mode))
        os.utime(target.fileno(), (FIXED_TIME_SECONDS, FIXED_TIME_SECONDS))


def inspect_copy(copy: CorpusCopy) -> CorpusDrift:
    """Compare a session's copy with the originals. Bytes are read only where a file was touched."""
    now = dict(list_states(copy.directory))
    suspects = [path for path, state in copy.states.items() if now.get(path) not in (None, state)]
    return CorpusDrift(
        changed=tuple(sorted(path for path in suspects if not _is_original(copy, path))),
        removed=tuple(sorted(copy.states.keys() - now.keys())),
        added=tuple(sorted(now.keys() - copy.states.keys())),
    )


def _is_original(copy: CorpusCopy, path: str) -> bool:
    found = copy.directory / path
    folder = next(folder for folder in copy.originals if found.is_relative_to(folder))
    original = copy.originals[folder] / found.relative_to(folder)
    if found.is_symlink() or original.is_symlink():
        return (
            found.is_symlink() and original.is_symlink() and found.readlink() == original.readlink()
        )
    modes = [path.stat().st_mode & stat.S_IXUSR for path in (found, original)]
    return modes[0] == modes[1] and filecmp.cmp(found, original, shallow=False)


def describe_drift(
    drift: CorpusDrift, *, allowed_writes: Sequence[str] = (), what: str = "the corpus"
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A drift as (reasons that make the run invalid, warnings).

    `allowed_writes` are gitignore patterns of new files that are expected.
    """
    invalid = tuple(
        f"{verb} {_name_files(paths)} of {what}; tools must leave the files they search alone"
        for verb, paths in (("changed", drift.changed), ("removed", drift.removed))
        if paths
    )
    allowed = GitIgnoreSpec.from_lines(allowed_writes)
    added = [path for path in drift.added if not allowed.match_file(path)]
    warnings = (f"wrote {_name_files(added)} into {what}; allow it with `writes`",) if added else ()
    return invalid, warnings


def _name_files(paths: Sequence[str]) -> str:
    named = ", ".join(paths[:NAMED_FILES])
    more = len(paths) - NAMED_FILES
    return f"{counted(len(paths), 'file')} ({named}{f' and {more} more' if more > 0 else ''})"
