"""The lock beside a configuration: what was frozen, and the check that it still holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.config import Config
from coldrun.tasks.lib.canonical import canonical_json, digest_bytes, digest_json
from coldrun.tasks.lib.errors import EditedError, LockError, PanelError
from coldrun.tasks.lib.records import Task
from coldrun.tasks.lib.safe_json import load_object, load_record

LOCK_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class EvaluationFiles:
    """The files of an evaluation, all beside its configuration."""

    config: Path

    @property
    def lock(self) -> Path:
        """What was frozen."""
        return self.config.with_suffix(".lock")

    @property
    def panel(self) -> Path:
        """The tasks, in canonical JSON Lines."""
        return self.config.with_suffix(".panel.jsonl")

    @property
    def sealed(self) -> Path:
        """The sealed tasks, encrypted."""
        return self.config.with_suffix(".sealed")

    @property
    def ledger(self) -> Path:
        """The openings of the sealed part."""
        return self.config.with_suffix(".holdout.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPanel:
    """A panel that was checked against its lock. `tasks` are those of all its parts."""

    name: str
    tasks: tuple[Task, ...]
    data: bytes
    lock: dict[str, Any]

    @property
    def digest(self) -> str:
        """The hash of the panel's bytes."""
        return digest_bytes(self.data)

    @property
    def lock_digest(self) -> str:
        """The hash of what the lock froze; openings of the sealed part come after and are not."""
        return digest_json({key: value for key, value in self.lock.items() if key != "holdout"})


def locked_settings(config: Config) -> dict[str, Any]:
    """The part of the configuration that the lock covers.

    Panel, sample, split, holdout, measure and bars; arms and products may change freely, and the
    panel's `repo` is where the same history happens to lie, so it is left out.
    """
    panel = config.panel.model_dump(mode="json", exclude={"repo", "used_for"})
    return {
        "panel": panel,
        "sample": {
            **config.sample.model_dump(mode="json"),
            "rule": config.sample_rule,
            "random": config.random_size,
            "primary": config.primary_part,
        },
        "split": config.split and config.split.model_dump(mode="json"),
        "holdout": config.holdout and config.holdout.model_dump(mode="json"),
        "measure": {
            **config.measure.model_dump(mode="json"),
            "primary": config.primary,
            "also": list(config.measures[1:]),
        },
        "bar": [bar.model_dump(mode="json") for bar in config.bar],
    }


def changed_settings(locked: dict[str, Any], current: dict[str, Any]) -> tuple[str, ...]:
    """The dotted names of the settings that differ between two `locked_settings`, sorted."""
    return tuple(sorted(_differences(locked, current, "")))


def _differences(mine: Any, other: Any, name: str) -> list[str]:
    if isinstance(mine, dict) and isinstance(other, dict):
        return [
            found
            for key in {*mine, *other}
            for found in _differences(
                mine.get(key), other.get(key), f"{name}.{key}" if name else str(key)
            )
        ]
    return [] if mine == other else [name]


def lock_to_bytes(lock: dict[str, Any]) -> bytes:
    """The lock as a person reads it: indented JSON with sorted keys and a final newline.

    Its own digest is among the keys of the file, so that an edit by hand shows.
    """
    whole = {**lock, "digest": digest_json(lock)}
    text = json.dumps(whole, sort_keys=True, ensure_ascii=False, indent=1, allow_nan=False)
    return (text + "\n").encode("utf-8")


def read_lock(files: EvaluationFiles) -> dict[str, Any]:
    """The lock beside the configuration."""
    try:
        lock = load_object(files.lock.read_bytes())
    except FileNotFoundError:
        raise LockError(
            f"{files.config} is not frozen (no {files.lock.name} beside it); "
            f"run `coldrun freeze {files.config}` first"
        ) from None
    except (OSError, ValueError) as error:
        raise LockError(
            f"cannot read the lock {files.lock} ({error}); restore it from version control, or "
            f"freeze anew with `coldrun freeze {files.config} --force`"
        ) from None
    found = lock.get("schema")
    if found != LOCK_SCHEMA:
        raise LockError(
            f"{files.lock} was written by another version of coldrun (lock schema {found}, this "
            f"one reads {LOCK_SCHEMA}); freeze anew with `coldrun freeze {files.config} --force`"
        )
    written = lock.pop("digest", None)
    if written != digest_json(lock):
        raise EditedError(
            f"the lock {files.lock} was edited since it was written: it says {written}, its "
            f"content has {digest_json(lock)}; restore it from version control, or freeze anew "
            f"with `coldrun freeze {files.config} --force`"
        )
    if not _is_whole(lock):
        raise LockError(
            f"the lock {files.lock} is damaged; restore it from version control, or freeze anew "
            f"with `coldrun freeze {files.config} --force`"
        )
    return dict(lock)


def _is_whole(lock: dict[str, Any]) -> bool:
    panel = lock.get("panel")
    return (
        isinstance(panel, dict)
        and isinstance(panel.get("digest"), str)
        and isinstance(panel.get("corpus"), dict)
        and isinstance(lock.get("settings"), dict)
    )


def frozen_digests(lock: Mapping[str, Any]) -> list[str]:
    """The hashes of the panel that is frozen now, and of those that this lock replaced."""
    return [lock["panel"]["digest"], *(entry["digest"] for entry in lock.get("history", []))]


def read_frozen_panel(files: EvaluationFiles, config: Config) -> FrozenPanel:
    """The frozen panel, checked: bytes against the lock first, then the configuration."""
    lock = read_lock(files)
    try:
        data = files.panel.read_bytes()
    except OSError as error:
        raise LockError(
            f"cannot read the frozen panel {files.panel} ({error.strerror}); mine it again with "
            f"`coldrun freeze {files.config}`, which checks it against the lock"
        ) from None
    check_digest(files, expected=lock["panel"]["digest"], data=data)
    current = locked_settings(with_locked_random(config, lock))
    changed = changed_settings(_complete(lock["settings"], current), current)
    if changed:
        raise LockError(
            f"{files.config} no longer says what was frozen: {', '.join(changed)} changed; undo "
            f"that, or freeze again with `coldrun freeze {files.config} --force`, which is recorded"
        )
    return FrozenPanel(name=files.config.stem, tasks=panel_from_bytes(data), data=data, lock=lock)


def with_locked_random(config: Config, lock: Mapping[str, Any]) -> Config:
    """The configuration with the random part that was frozen, where it does not say how large.

    The default depends on the arms, which may change freely. Older locks have no such part.
    """
    if config.sample.random is not None:
        return config
    random = lock["settings"].get("sample", {}).get("random", 0)
    return config.model_copy(update={"sample": config.sample.model_copy(update={"random": random})})


def _complete(locked: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    """The settings of an older lock with those that it could not have, where they do nothing."""
    kind = locked.get("panel", {}).get("kind")
    later = {} if kind == "commit-files" else current["panel"]
    panel = {name: later[name] for name in ("drop", "duplicates", "exclude_gold") if name in later}
    sample = {"random": 0, "primary": current["sample"]["primary"]}
    return {
        **locked,
        "panel": {**locked.get("panel", {}), **panel},
        "sample": {**sample, **locked.get("sample", {})},
    }


def check_digest(files: EvaluationFiles, *, expected: str, data: bytes) -> None:
    """Stop when the panel's bytes are not the frozen ones."""
    found = digest_bytes(data)
    if expected == found:
        return
    why = ""
    if digest_bytes(data.replace(b"\r\n", b"\n")) == expected:
        why = " (only its line ends differ: git rewrote them, see core.autocrlf)"
    raise LockError(
        f"{files.panel} is not the panel that was frozen: the lock says {expected}, the file has "
        f"{found}{why}; restore it, or freeze again with `coldrun freeze {files.config} --force`"
    )


def panel_to_bytes(tasks: Sequence[Task]) -> bytes:
    """The panel's canonical bytes: one JSON object a line, sorted by id, UTF-8, LF."""
    ids = [task.id for task in tasks]
    if len(set(ids)) < len(ids):
        repeated = next(task_id for task_id in ids if ids.count(task_id) > 1)
        raise PanelError(f"two tasks have the id {repeated!r}; ids must be unique")
    lines = [canonical_json(_task_to_values(task)) for task in sorted(tasks, key=lambda t: t.id)]
    return b"".join(line + b"\n" for line in lines)


def panel_from_bytes(data: bytes) -> tuple[Task, ...]:
    """The tasks in a panel's bytes, in panel order."""
    try:
        return tuple(load_record(line, Task) for line in data.splitlines())
    except ValueError as error:
        raise PanelError(f"the panel is not readable ({error}); freeze it again") from None


def _task_to_values(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "query": task.query,
        "answer": task.answer,
        "date": task.date,
        "base": task.base,
        "gold": [
            {"item": gold.item, "grade": gold.grade, "provenance": gold.provenance}
            for gold in sorted(task.gold, key=lambda gold: gold.item)
        ],
        "strata": dict(task.strata),
        **({"parts": list(task.parts)} if task.parts else {}),
    }
