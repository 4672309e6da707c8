"""What `backfill` and `decompose` are asked for, from plain values to a request."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

from coldrun.tasks.history.campaign import HistoryMode
from coldrun.tasks.history.commits import (
    NEW,
    list_new,
    list_range,
    open_product,
    product_tip,
    require_product,
    select_commits,
)
from coldrun.tasks.history.history_lifecycle import (
    HistoryRequest,
    choose_arm,
    measured_before,
    require_product_arm,
)
from coldrun.tasks.history.history_plan import HistoryCommit, thin_out
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.run.prepare import Evaluation


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
    """The request of a backfill; None where `commits` is NEW and nothing is.

    Raises:
        ColdrunError: The configuration, the arm or the commits do not fit.
    """
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
    """The request of a decomposition.

    Raises:
        ColdrunError: The configuration, the arm or the commits do not fit.
    """
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
