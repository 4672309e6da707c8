"""What a run was started with: enough to continue it, to judge it and to print it again."""

from __future__ import annotations

import datetime as dt
import secrets
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from coldrun.tasks.config import Config, parse_config
from coldrun.tasks.lib.concealment import conceal_values
from coldrun.tasks.lib.errors import ConfigError, StorageError
from coldrun.tasks.lib.plain_text import cut_text, one_line
from coldrun.tasks.lib.records import Point
from coldrun.tasks.lib.safe_json import load_object, to_record

MANIFEST_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of one run. `lock` is the lock as it was when the run started.

    `planned` maps each arm to the number of answers it owes, of the panel's primary part alone with
    `only_primary`. `config_path` is for people.
    `unsealed` says of arms why their answers cannot be replayed, None in runs from before sessions
    were sealed; `knock_outs` says of arms how they were when their product was taken away;
    `doubted` are arms whose answers, asked for again under `--reuse`, were others.
    """

    run_id: str
    name: str
    config: Config
    config_path: str
    lock: dict[str, Any]
    panel_digest: str
    lock_digest: str
    point: Point | None
    environment: dict[str, Any]
    planned: dict[str, int]
    trials: dict[str, int]
    started_at: str
    mode: str = "cold"
    only_primary: bool = False
    unsealed: dict[str, str] | None = None
    knock_outs: dict[str, str] = field(default_factory=dict)
    doubted: list[str] = field(default_factory=list)

    def to_values(self) -> dict[str, Any]:
        """The manifest as JSON values, without secrets."""
        values = {
            "schema": MANIFEST_SCHEMA,
            "run_id": self.run_id,
            "name": self.name,
            "config": self.config.model_dump(mode="json", exclude_none=True),
            "config_path": self.config_path,
            "lock": self.lock,
            "panel_digest": self.panel_digest,
            "lock_digest": self.lock_digest,
            "point": None if self.point is None else point_values(self.point),
            "environment": self.environment,
            "planned": self.planned,
            "trials": self.trials,
            "started_at": self.started_at,
            "mode": self.mode,
            "only_primary": self.only_primary,
            "unsealed": self.unsealed,
            "knock_outs": self.knock_outs,
            "doubted": self.doubted,
        }
        kept: dict[str, Any] = conceal_values(values)
        return kept


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ConfigError)
"""What a manifest raises that is damaged or of another version."""


def manifest_from_values(values: dict[str, Any]) -> Manifest:
    """The manifest in JSON values.

    Raises:
        StorageError: They are damaged, or another version of coldrun wrote them.
    """
    try:
        return _from_values(values)
    except UNREADABLE as error:
        raise StorageError(
            f"what run {values.get('run_id', '?')} was started with is not readable by this "
            f"version of coldrun ({cut_text(one_line(str(error)), 200)}); start a new run"
        ) from None


def _from_values(values: dict[str, Any]) -> Manifest:
    own = {key: value for key, value in values.items() if key != "schema"}
    point = own.pop("point")
    config = parse_config(own["config"], source="the run's manifest")
    if not config.arm:  # the built-in arms of that time, which were fewer once
        asked = tuple(arm for arm in config.arms if arm.name in own["trials"])
        config = config.model_copy(update={"arm": asked})
    return Manifest(
        **{**own, "config": config},
        point=None if point is None else point_from_values(point),
    )


def read_manifest(run_id: str, text: str | None) -> tuple[Manifest, tuple[str, ...]]:
    """What a landed run was started with, and what made it invalid, from its row.

    Raises:
        StorageError: It is not there, or another version of coldrun wrote it.
    """
    try:
        values = load_object(text or "")
        invalid = to_record(values.pop("invalid"), list[str])
        return _from_values(values), tuple(invalid)
    except UNREADABLE as error:
        raise StorageError(
            f"run {run_id} cannot be shown: this version of coldrun cannot read what it was "
            f"started with ({cut_text(one_line(str(error)), 200)}); its rows can be read"
        ) from None


def new_run_id(now: dt.datetime) -> str:
    """A run id that sorts by start time and never repeats, e.g. `20260714-093012-5f2a91c4`.

    The last part begins with the microsecond: two runs of one second sort as they were started.
    """
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond:05x}{secrets.randbelow(16**3):03x}"


def point_values(point: Point) -> dict[str, Any]:
    """A point as JSON values."""
    return {**asdict(point), "directory": str(point.directory)}


def point_from_values(values: dict[str, Any]) -> Point:
    """The point in JSON values; other keys, of runs from before, are dropped."""
    known = {each.name: values[each.name] for each in fields(Point) if each.name in values}
    return Point(**{**known, "directory": Path(values["directory"])})
