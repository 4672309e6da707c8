"""A measure over all measured points of a panel, whichever command measured them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from coldrun.tasks.config import Config
from coldrun.tasks.history.history_model import ScorePart
from coldrun.tasks.history.history_points import score_parts
from coldrun.tasks.history.outcomes import MeasuredRun, read_floors, read_runs
from coldrun.tasks.judge.gate_model import Part
from coldrun.tasks.judge.run_analysis import null_means
from coldrun.tasks.lib.errors import RepositoryError, UsageError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.run.prepare import Evaluation
from coldrun.tasks.stats.decomposition import PointOutcome, StepStatus, Yardstick, judge_step
from coldrun.tasks.stats.noise import PooledFloor
from coldrun.tasks.stats.paired import GATE_ALPHA
from coldrun.warehouse.reader import connect, select_rows

TREND_TABLES = ("runs", "captures", "scores", "arm_runs", "arm_scores", "trend")
"""The view `trend`, and what it reads."""


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


class Trend(Part):
    """A measure over points. `rules` are bars and the null line, by what they are called."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    name: str
    panel_digest: str
    measure: str
    arm: str
    n: int
    points: list[TrendPoint]
    steps: list[TrendStep]
    rules: dict[str, float]
    warnings: list[str]

    def to_json(self) -> str:
        """The trend as indented JSON."""
        return self.model_dump_json(by_alias=True, indent=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A commit in the history, as far as it is known."""

    commit: str
    subject: str
    committed_at: str


def build_trend(
    evaluation: Evaluation,
    warehouse: Path,
    *,
    arm: str,
    measure: str,
    repository: Repository | None,
) -> Trend:
    """Read every measured point of an evaluation's panel and order them by history.

    Args:
        evaluation: Whose panel.
        warehouse: Where results are.
        arm: The arm that is looked at.
        measure: One of the evaluation's measures.
        repository: The product's, None when it cannot be read: points then go by run date.

    Raises:
        UsageError: Nothing was measured, or the measure is none of the evaluation's.
    """
    if measure not in evaluation.config.measures:
        raise UsageError(
            f"no measure {measure!r}; the evaluation has {', '.join(evaluation.config.measures)}"
        )
    rows = select_rows(
        connect(warehouse, only=TREND_TABLES, leaves_out=True),
        "SELECT * FROM trend WHERE panel_digest = ? AND measure = ? ORDER BY started_at, arm",
        [evaluation.frozen.digest, measure],
    )
    if not rows:
        raise UsageError(
            f"no point of {evaluation.frozen.name} was measured yet; start with "
            f"`coldrun backfill {evaluation.config_path} --commits A..B`"
        )
    by_commit: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_commit.setdefault(row["product_commit"], {})[row["arm"]] = row
    places, notes = _order(warehouse, by_commit, repository)
    runs = read_runs(warehouse, [row["run_id"] for row in rows])
    seed = int(evaluation.frozen.digest.removeprefix("sha256:")[:8], 16)
    points = [_point(place, by_commit[place.commit], runs, measure, seed) for place in places]
    newest = runs[max(runs)]
    floors = read_floors(warehouse, newest, measure=measure)
    steps = _steps(
        [by_commit[place.commit] for place in places], runs, floors, measure=measure, seed=seed
    )
    return Trend(
        name=evaluation.frozen.name,
        panel_digest=evaluation.frozen.digest,
        measure=measure,
        arm=arm,
        n=len(evaluation.frozen.tasks),
        points=points,
        steps=list(steps),
        rules=_rules(evaluation, measure),
        warnings=notes,
    )


def _order(
    warehouse: Path,
    by_commit: Mapping[str, Mapping[str, Mapping[str, Any]]],
    repository: Repository | None,
) -> tuple[list[_Place], list[str]]:
    """The commits by the committer's clock, as histories recorded it, or as git says."""
    known = {
        row["product_commit"]: _Place(
            commit=row["product_commit"],
            subject=row["subject"],
            committed_at=row["committed_at"].isoformat(),
        )
        for row in select_rows(
            connect(warehouse, only=("points",), leaves_out=True),
            "SELECT DISTINCT ON (product_commit) product_commit, subject, committed_at FROM points",
        )
    }
    unknown = [commit for commit in by_commit if commit not in known]
    notes = []
    for commit in unknown:
        place = _ask_git(repository, commit)
        if place is None:
            started = min(row["started_at"] for row in by_commit[commit].values())
            place = _Place(commit=commit, subject="?", committed_at=started.isoformat())
            notes.append(f"{commit[:12]} is not in the product's repository; placed by its run")
        known[commit] = place
    return sorted((known[commit] for commit in by_commit), key=_when), notes


def _when(place: _Place) -> tuple[float, str]:
    import datetime as dt

    return dt.datetime.fromisoformat(place.committed_at).timestamp(), place.commit


def _ask_git(repository: Repository | None, commit: str) -> _Place | None:
    from coldrun.tasks.history.commits import list_named

    if repository is None:
        return None
    try:
        found = list_named(repository, [(commit, commit)], source="the warehouse")[0]
    except RepositoryError:
        return None
    return _Place(commit=commit, subject=found.subject, committed_at=found.committed_at)


def _point(
    place: _Place,
    rows: Mapping[str, Mapping[str, Any]],
    runs: Mapping[str, MeasuredRun],
    measure: str,
    seed: int,
) -> TrendPoint:
    parts = {
        run_id: score_parts(runs[run_id], seed, only=measure)
        for run_id in {row["run_id"] for row in rows.values()}
    }
    return TrendPoint(
        commit=place.commit,
        subject=place.subject,
        committed_at=place.committed_at,
        evidence={arm: row["evidence"] for arm, row in rows.items()},
        run_ids={arm: row["run_id"] for arm, row in rows.items()},
        arms={arm: parts[row["run_id"]][arm][measure] for arm, row in rows.items()},
    )


def _steps(
    points: Sequence[Mapping[str, Mapping[str, Any]]],
    runs: Mapping[str, MeasuredRun],
    floors: Mapping[str, PooledFloor | None],
    *,
    measure: str,
    seed: int,
) -> Iterator[TrendStep]:
    """Every step of every product arm whose change a paired test supports."""
    for before, after in pairwise(points):
        for arm, row in after.items():
            if arm not in before or row["role"] != "candidate":
                continue
            judged = judge_step(
                _outcome(before, runs, arm),
                _outcome(after, runs, arm),
                arm=arm,
                yardstick=Yardstick(primary=measure, floors=floors, seed=seed),
                confounders=["its configuration changed too"]
                if before[arm]["arm_config"] != row["arm_config"]
                else [],
            )
            change = judged.changes[measure]
            if not judged.clears_noise or change.p > GATE_ALPHA:
                continue
            yield TrendStep(
                arm=arm,
                **{"from": before[arm]["product_commit"]},
                to=row["product_commit"],
                status=judged.status,
                up=len(change.up),
                down=len(change.down),
                difference=change.difference,
                p=change.p,
                reasons=list(judged.reasons),
            )


def _outcome(
    rows: Mapping[str, Mapping[str, Any]], runs: Mapping[str, MeasuredRun], arm: str
) -> PointOutcome:
    return runs[rows[arm]["run_id"]].outcome


def _rules(evaluation: Evaluation, measure: str) -> dict[str, float]:
    """The bars of this measure, and the best null that needs no candidate."""
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
