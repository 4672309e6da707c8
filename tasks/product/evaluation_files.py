"""The files of evaluations that lie in a product's checkout: they hold the gold."""

from __future__ import annotations

import functools
import posixpath
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from coldrun.tasks.lib.records import Point
from coldrun.tasks.product.checkout import list_tracked

FROZEN = (".panel.jsonl", ".lock", ".sealed", ".holdout.jsonl")
"""How the names of what `freeze` writes beside a configuration end."""


def find_evaluation_files(point: Point, *, config_dir: Path) -> tuple[str, ...]:
    """Paths in the point's checkout that hold tasks with their gold, sorted.

    These are the frozen panel, lock, sealed part and ledger of every configuration there, and the
    tasks and tickets that such a configuration, or one in `config_dir`, names.
    """
    return _find(point.directory, point.tree, config_dir)


@functools.lru_cache(maxsize=64)
def _find(checkout: Path, tree: str, config_dir: Path) -> tuple[str, ...]:  # noqa: ARG001
    try:
        tracked = set(list_tracked(checkout))
    except Exception:  # noqa: BLE001 - a folder that is no checkout of ours has none
        return ()
    found: set[str] = set()
    for name in tracked:
        if name.endswith(".toml"):
            config = PurePosixPath(name)
            frozen = {str(config.with_suffix(end)) for end in FROZEN} & tracked
            if any(not each.endswith(".lock") for each in frozen):
                found |= frozen
            found |= set(_named(checkout / name, config.parent)) & tracked
        elif name.endswith(FROZEN[0]):
            stem = name.removesuffix(FROZEN[0])
            found |= {stem + end for end in FROZEN} & tracked
    own = [path for path in config_dir.glob("*.toml") if path.is_file()]
    sources = [config_dir / name for each in own for name in _named(each, PurePosixPath())]
    panels = [path for path in config_dir.glob(f"*{FROZEN[0]}") if path.is_file()]
    sizes = {path.stat().st_size: path for path in (*sources, *panels) if path.is_file()}
    for name in tracked - found:
        path = checkout / name
        same = sizes.get(path.lstat().st_size) if path.is_file() else None
        if same is not None and same.read_bytes() == path.read_bytes():
            found.add(name)
    return tuple(sorted(found))


def _named(config: Path, folder: PurePosixPath) -> Iterator[str]:
    """The files of tasks and tickets that a configuration names."""
    try:
        values: dict[str, Any] = tomllib.loads(config.read_text("utf-8"))
        panel = values.get("panel", {})
        names = [panel.get("file"), panel.get("tickets")] if isinstance(panel, dict) else []
    except (OSError, ValueError):
        return
    for name in names:
        if isinstance(name, str) and not name.startswith("/"):
            yield posixpath.normpath(folder / name)
