"""What a history is asked for, and how `backfill` and `decompose` come to it from plain values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from coldrun.tasks.config import Config
from coldrun.tasks.history.commits import (
    NEW,
    list_new,
    list_range,
    open_product,
    product_tip,
    require_product,
    select_commits,
)
from coldrun.tasks.history.history_plan import HistoryCommit, thin_out
from coldrun.tasks.lib.errors import ConfigError, UsageError
from coldrun.tasks.lib.own_code import own_code
from coldrun.tasks.run.prepare import Evaluation, arm_digests
from coldrun.warehouse.reader import connect, select_rows

HistoryMode = Literal["cold", "reuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """What is asked for. `commits` are the history, oldest first; `arm` is the one looked at.

    `known` maps commits to runs that were executed for this very history and count as its own.
    """

    kind: Literal["backfill", "decompose"]
    evaluation: Evaluation
    warehouse: Path
    commits: tuple[HistoryCommit, ...]
    arm: str
    mode: HistoryMode
    is_whole: bool = True
    trials: int | None = None
    known: Mapping[str, str] = field(default_factory=dict)

    @property
    def primary(self) -> str:
        """The measure that decides."""
        return self.evaluation.config.primary

    def to_values(self) -> dict[str, Any]:
        """All that decides what is measured: an unfinished journal of the same is continued."""
        return {
            "kind": self.kind,
            "name": self.evaluation.frozen.name,
            "config": self.evaluation.config.model_dump(mode="json", exclude={"prices"}),
            "config_path": str(self.evaluation.config_path),
            "panel": self.evaluation.frozen.digest,
            "commits": [commit.commit for commit in self.commits],
            "arm": self.arm,
            "mode": self.mode,
            "is_whole": self.is_whole,
            "trials": self.trials,
            "known": dict(self.known),
            "code": dict(own_code()),
            "arms": arm_digests(self.evaluation),
        }


def request_backfill(  # noqa: PLR0913 - the options of the command
    evaluation: Evaluation,
    commits: str,
    *,
    warehouse: Path,
    every: int = 1,
    at_most: int | None = None,
    since: dt.date | None = None,
    is_first_parent: bool = True,
    arm: str | None = None,
    mode: HistoryMode = "reuse",
) -> HistoryRequest | None:
    """The request of a backfill; None where `commits` is NEW and nothing is."""
    require_product_arm(evaluation.config)
    name = choose_arm(evaluation.config, arm)
    found = _select(evaluation, warehouse, commits, is_first_parent=is_first_parent)
    if not found:
        return None
    kept = thin_out(found, every=every, at_most=at_most, since=since)
    if not kept:
        raise UsageError(f"--since leaves none of the {len(found)} commits; choose an earlier day")
    return HistoryRequest(
        kind="backfill",
        evaluation=evaluation,
        warehouse=warehouse,
        commits=kept,
        arm=name,
        mode=mode,
    )


def _select(
    evaluation: Evaluation, warehouse: Path, text: str, *, is_first_parent: bool
) -> tuple[HistoryCommit, ...]:
    if text != NEW:
        return select_commits(open_product(evaluation), text, is_first_parent=is_first_parent)
    repository = open_product(evaluation, update=True)
    tip = product_tip(repository, require_product(evaluation))
    return list_new(repository, tip, measured_before(evaluation, warehouse))


def request_decomposition(  # noqa: PLR0913 - the options of the command
    evaluation: Evaluation,
    from_revision: str,
    to_revision: str,
    *,
    warehouse: Path,
    arm: str | None = None,
    is_whole: bool = False,
    mode: HistoryMode = "cold",
    trials: int | None = None,
    known: Mapping[str, str] | None = None,
) -> HistoryRequest:
    """The request of a decomposition."""
    require_product_arm(evaluation.config)
    return HistoryRequest(
        kind="decompose",
        evaluation=evaluation,
        warehouse=warehouse,
        commits=list_range(open_product(evaluation), from_revision, to_revision),
        arm=choose_arm(evaluation.config, arm),
        mode=mode,
        is_whole=is_whole,
        trials=trials,
        known=known or {},
    )


def choose_arm(config: Config, name: str | None) -> str:
    """The arm that a history looks at: the named one, else the first candidate, else the first."""
    names = [arm.name for arm in config.arms]
    if name is None:
        candidates = [arm.name for arm in config.arms if arm.role == "candidate"]
        return (candidates or names)[0]
    if name not in names:
        raise UsageError(f"no arm {name!r}; the configuration has {', '.join(names)}")
    return name


def require_product_arm(config: Config) -> None:
    """Refuse a history in which no arm runs the product."""
    if not any(arm.runs_program for arm in config.arms):
        raise ConfigError(
            "no arm runs the product, so nothing could differ between its commits; add an "
            "[[arm]] with the `argv` of a program in it"
        )


def measured_before(evaluation: Evaluation, warehouse: Path) -> frozenset[str]:
    """Commits and trees of the product that were measured, or tried, on the present panel."""
    rows = select_rows(
        connect(warehouse),
        "SELECT product_commit, product_tree FROM runs WHERE panel_digest = $1 "
        "AND status = 'finished' AND product_commit IS NOT NULL AND NOT is_dirty "
        "UNION SELECT product_commit, product_tree FROM points WHERE panel_digest = $1 "
        "AND status IN ('measured', 'failed')",
        [evaluation.frozen.digest],
    )
    return frozenset(
        value for row in rows for value in (row["product_commit"], row["product_tree"]) if value
    )
