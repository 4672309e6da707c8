"""What a set-up made from the product itself, and so must not hand on to another commit.

A set-up may be shared by commits whose `setup_key` files are the same, as long as nothing in its
output depends on what else those commits have. Copies and generated files can be told from what is
installed; code that was compiled or packed far from its source cannot.
"""

from __future__ import annotations

import mmap
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.git.path_text import decode_path, encode_path
from coldrun.tasks.lib.machine.files import BYTECODE_FOLDER
from coldrun.tasks.product.checkout import find_entries, list_tracked

BUILD_FOLDERS = frozenset({"_build", "bin", "build", "dist", "obj", "out", "target"})
"""Folders of these names that a set-up makes beside the product's own hold what it built of it."""

SHORT_NAME = 7
"""Digits of a commit's name that a version is stamped with, at the least."""

HEX_DIGITS = b"0123456789abcdef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """Something that a set-up made of the product: it holds where `path` is still `entry`.

    `path` is a file or folder of the product, "" for all of it, which no other commit has; `why`
    says what was made. Both are text by the rule of `tasks.lib.git.path_text`.
    """

    path: str
    entry: str
    why: str


def path_text(name: str) -> str:
    """The name of a file as text that can be stored and printed."""
    return encode_path(os.fsencode(name))


def path_name(text: str) -> str:
    """The name that `path_text` wrote."""
    return os.fsdecode(decode_path(text))


def repository_state(checkout: Path) -> dict[str, tuple[int, int]]:
    """The size and time of every file in `.git` but the index, which any `git status` renews."""
    found = {}
    for folder, _, names in os.walk(checkout / ".git"):
        for name in names:
            path = Path(folder, name)
            state = path.lstat()
            found[str(path)] = (state.st_size, state.st_mtime_ns)
    found.pop(str(checkout / ".git" / "index"), None)
    return found


def find_ties(
    checkout: Path,
    commit: str,
    *,
    names: Sequence[str],
    made: Sequence[str],
    changed_repository: bool,
) -> tuple[Tie, ...]:
    """What the output of a set-up depends on in the commit at which it ran, by path."""
    tracked = list_tracked(checkout)
    found: dict[str, str] = {}
    if changed_repository:
        found[""] = "changed the repository of the checkout"
    for path, mode in tracked.items():
        if mode == "160000":
            found.setdefault("", f"may have fetched the submodule {path_text(path)}")
    for name in made:
        if name.rstrip("/").rpartition("/")[2] in BUILD_FOLDERS:
            found.setdefault("", f"built {path_text(name)}")
    for path, why in _ties_of_files(checkout, commit, names, tracked):
        found.setdefault(path, why)
    entries = find_entries(checkout, commit, [path for path in found if path])
    return tuple(
        Tie(path=path_text(path), entry=entries.get(path) or commit, why=why)
        for path, why in sorted(found.items())
    )


def broken_tie(ties: Iterable[Mapping[str, Any]], repository: Path, commit: str) -> str | None:
    """Why a set-up with these ties does not hold for a commit, or None when it does."""
    known = {path_name(values["path"]): Tie(**values) for values in ties}
    entries = find_entries(repository, commit, [path for path in known if path])
    for path, tie in known.items():
        if (entries.get(path) or commit) != tie.entry:
            return tie.why
    return None


def _ties_of_files(
    checkout: Path, commit: str, names: Sequence[str], tracked: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    folders = {_folder(path) for path in tracked}
    by_size = _tracked_by_size(checkout, tracked)
    for name in names:
        made, text = checkout / name, path_text(name)
        if name.endswith("/"):
            yield "", f"made a repository of its own in {text}"
        elif BYTECODE_FOLDER in name.split("/") or made.is_symlink() or not made.is_file():
            continue
        else:
            folder = _folder(name)
            if folder in folders and (folder or os.access(made, os.X_OK)):
                yield folder, f"made {text} beside the product's files"
            for path in _copied(checkout, made, by_size):
                yield _folder(path) or path, f"copied {path_text(path)} to {text}"
            if _has_name(made, commit[:SHORT_NAME].encode("ascii")):
                yield "", f"wrote the commit's name into {text}"


def _tracked_by_size(checkout: Path, tracked: Mapping[str, str]) -> dict[int, list[str]]:
    found = defaultdict(list)
    for path, mode in tracked.items():
        if mode.startswith("100"):
            found[(checkout / path).stat().st_size].append(path)
    return found


def _copied(checkout: Path, made: Path, by_size: Mapping[int, Sequence[str]]) -> Iterator[str]:
    candidates = by_size.get(made.stat().st_size, ())
    content = made.read_bytes() if candidates else b""
    if content.strip():
        yield from (path for path in candidates if (checkout / path).read_bytes() == content)


def _has_name(path: Path, name: bytes) -> bool:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            at = content.find(name)
            while at >= 0:
                if at == 0 or content[at - 1] not in HEX_DIGITS:
                    return True
                at = content.find(name, at + 1)
    return False


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
