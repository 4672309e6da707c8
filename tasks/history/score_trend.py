"""A measure over all measured points of a panel, whichever command measured them; its document."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import Field

from coldrun.tasks.config import Config
from coldrun.tasks.history.commits import list_named
from coldrun.tasks.history.history_document import SUBJECT
from coldrun.tasks.history.history_model import HistoryReport, ScorePart
from coldrun.tasks.history.history_words import tasks_text
from coldrun.tasks.history.outcomes import (
    MeasuredRun,
    panel_seed,
    read_floors,
    read_runs,
    score_parts,
)
from coldrun.tasks.judge.cost_model import Part, pick
from coldrun.tasks.judge.run_analysis import null_means
from coldrun.tasks.lib.errors import RepositoryError, UsageError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.plain_text import counted, cut_text, short_digest
from coldrun.tasks.report.document import Block, Code, Heading, Line, Table, lines, warning_lines
from coldrun.tasks.report.run_words import p_words
from coldrun.tasks.run.prepare import Evaluation
from coldrun.tasks.stats.decomposition import StepStatus, Yardstick, judge_step
from coldrun.tasks.stats.paired import GATE_ALPHA
from coldrun.warehouse.reader import connect, select_rows

TREND_TABLES = ("runs", "captures", "scores", "arm_runs", "arm_scores", "trend")
"""The view `trend`, and what it reads."""

Rows: TypeAlias = "Mapping[str, Mapping[str, Any]]"
"""The rows of one commit, by arm."""


class TrendPoint(Part):
    """One commit. `evidence` and `run_ids` are by arm."""

    commit: str
    subject: str
    committed_at: str
    evidence: dict[str, str]
    run_ids: dict[str, str]
    arms: dict[str, ScorePart]


class TrendStep(Part):
    """A change of one arm between neighbouring points that a paired test supports."""

    arm: str
    from_: str = Field(alias="from")
    to: str
    status: StepStatus
    up: int
    down: int
    difference: float
    p: float
    reasons: list[str]


class Trend(HistoryReport):
    """A measure over points. `rules` are bars and the null line, by what they are called."""

    name: str
    panel_digest: str
    measure: str
    arm: str
    n: int
    points: list[TrendPoint]
    steps: list[TrendStep]
    rules: dict[str, float]
    warnings: list[str]


def build_trend(
    evaluation: Evaluation,
    warehouse: Path,
    *,
    arm: str,
    measure: str,
    repository: Repository | None,
) -> Trend:
    """Read every measured point of an evaluation's panel and order them by history.

    Where the product's `repository` cannot be read (None), points go by the date of their run.
    """
    frozen, config = evaluation.frozen, evaluation.config
    if measure not in config.measures:
        raise UsageError(f"no measure {measure!r}; the evaluation has {', '.join(config.measures)}")
    rows = select_rows(
        connect(warehouse, only=TREND_TABLES, leaves_out=True),
        "SELECT * FROM trend WHERE panel_digest = ? AND measure = ? ORDER BY started_at, arm",
        [frozen.digest, measure],
    )
    if not rows:
        raise UsageError(
            f"no point of {frozen.name} was measured yet; start with "
            f"`coldrun backfill {evaluation.config_path} --commits A..B`"
        )
    by_commit: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_commit.setdefault(row["product_commit"], {})[row["arm"]] = row
    places, notes = _order(warehouse, by_commit, repository)
    runs = read_runs(warehouse, [row["run_id"] for row in rows])
    seed = panel_seed(frozen.digest)
    floors = read_floors(warehouse, runs[max(runs)], measure=measure)
    yardstick = Yardstick(primary=measure, floors=floors, seed=seed)
    ordered = [by_commit[place["commit"]] for place in places]
    scores = {run_id: score_parts(run, seed, only=measure) for run_id, run in runs.items()}
    return Trend(
        name=frozen.name,
        panel_digest=frozen.digest,
        measure=measure,
        arm=arm,
        n=len(frozen.tasks),
        points=[
            TrendPoint(
                **place,
                evidence={name: row["evidence"] for name, row in arms.items()},
                run_ids={name: row["run_id"] for name, row in arms.items()},
                arms={name: scores[row["run_id"]][name][measure] for name, row in arms.items()},
            )
            for place, arms in zip(places, ordered, strict=True)
        ],
        steps=list(_steps(ordered, runs, yardstick)),
        rules=_rules(evaluation, measure),
        warnings=notes,
    )


def _order(
    warehouse: Path, by_commit: Mapping[str, Rows], repository: Repository | None
) -> tuple[list[dict[str, str]], list[str]]:
    known = {
        row["commit"]: {**row, "committed_at": row["committed_at"].isoformat()}
        for row in select_rows(
            connect(warehouse, only=("points",), leaves_out=True),
            "SELECT DISTINCT ON (product_commit) product_commit AS commit, subject, committed_at "
            "FROM points",
        )
    }
    notes = []
    for commit, arms in by_commit.items():
        place = known.get(commit) or _ask_git(repository, commit)
        if place is None:
            started = min(row["started_at"] for row in arms.values())
            place = {"commit": commit, "subject": "?", "committed_at": started.isoformat()}
            notes.append(f"{commit[:12]} is not in the product's repository; placed by its run")
        known[commit] = place
    return sorted((known[commit] for commit in by_commit), key=_when), notes


def _when(place: Mapping[str, str]) -> tuple[float, str]:
    return dt.datetime.fromisoformat(place["committed_at"]).timestamp(), place["commit"]


def _ask_git(repository: Repository | None, commit: str) -> dict[str, str] | None:
    if repository is None:
        return None
    try:
        found = list_named(repository, [commit], source="the warehouse")[0]
    except RepositoryError:
        return None
    return {"commit": commit, "subject": found.subject, "committed_at": found.committed_at}


def _steps(
    points: Sequence[Rows], runs: Mapping[str, MeasuredRun], yardstick: Yardstick
) -> Iterator[TrendStep]:
    for before, after in pairwise(points):
        for arm, row in after.items():
            if arm not in before or row["role"] != "candidate":
                continue
            is_same = before[arm]["arm_config"] == row["arm_config"]
            judged = judge_step(
                runs[before[arm]["run_id"]].outcome,
                runs[row["run_id"]].outcome,
                arm=arm,
                yardstick=yardstick,
                confounders=[] if is_same else ["its configuration changed too"],
            )
            change = judged.changes[yardstick.primary]
            if not judged.clears_noise or change.p > GATE_ALPHA:
                continue
            yield pick(
                TrendStep,
                change,
                arm=arm,
                from_=before[arm]["product_commit"],
                to=row["product_commit"],
                status=judged.status,
                reasons=judged.reasons,
            )


def _rules(evaluation: Evaluation, measure: str) -> dict[str, float]:
    config: Config = evaluation.config
    rules = {
        f"bar: {bar.arm} ≥ {bar.at_least:g}": bar.at_least
        for bar in config.bar
        if bar.measure == measure and bar.at_least is not None
    }
    frozen = evaluation.frozen
    means = null_means(frozen.tasks, config, frozen.lock, measure=measure)
    best = max(means, key=lambda name: means[name])
    return {**rules, f"null: {best} {means[best]:.3f}": means[best]}


def trend_document(trend: Trend) -> Iterator[Block]:
    """The points, the steps that a test supports, and the lines to hold against them."""
    yield Heading(
        f"{trend.name} at {trend.measure}, {counted(trend.n, 'task')}, panel "
        f"{short_digest(trend.panel_digest)}: {counted(len(trend.points), 'point')}"
    )
    yield Line(("panel ", Code(trend.panel_digest)))
    names = dict.fromkeys(arm for point in trend.points for arm in point.arms)
    arms = [trend.arm, *(arm for arm in names if arm != trend.arm)]
    yield Table(
        headers=["commit", "subject", "date", "evidence", *arms, "step"],
        rows=[_point_cells(trend, point, arms) for point in trend.points],
        text_columns=4,
        prose=[1],
    )
    yield from lines(f"{name} ({value * trend.n:.1f} tasks)" for name, value in trend.rules.items())
    yield from lines(
        f"{step.arm} {step.from_[:7]}..{step.to[:7]} {step.status}: {reason}"
        for step in trend.steps
        for reason in step.reasons
    )
    yield from warning_lines(trend.warnings)


def _point_cells(trend: Trend, point: TrendPoint, arms: list[str]) -> list[str]:
    steps = [
        f"{tasks_text(step.difference)} ({step.up}/{step.down}, p = {p_words(step.p)})"
        + ("" if step.status == "changed" else f" {step.status}")
        for step in trend.steps
        if step.arm == trend.arm and step.to == point.commit
    ]
    return [
        point.commit[:12],
        cut_text(point.subject, SUBJECT),
        point.committed_at[:10],
        point.evidence.get(trend.arm, "missing"),
        *(_score(point.arms.get(arm), is_first=arm == trend.arm) for arm in arms),
        *(steps or [""]),
    ]


def _score(part: ScorePart | None, *, is_first: bool) -> str:
    if part is None:
        return ""
    count = f"{part.value:.3f}" if part.count is None else str(part.count)
    return f"{count} [{part.low:.2f}, {part.high:.2f}]" if is_first else count
