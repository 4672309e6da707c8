"""What changed between two measured points, for one arm: counts, tests and the status of a step.

Everything is paired on the tasks of one panel. p is one-sided in the direction of the change,
as the gate's is: p <= 0.025 is the two-sided 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import ne
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field

from coldrun.tasks.lib.records import Role
from coldrun.tasks.stats.intervals import paired_interval
from coldrun.tasks.stats.noise import Drift, PooledFloor, has_unusual_flips, judge_drift
from coldrun.tasks.stats.paired import GATE_ALPHA, sign_flip_p

StepStatus = Literal["changed", "unchanged", "below_noise", "unverified", "confounded", "bundle"]

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAtPoint:
    """One arm's outcomes at one point: scores by measure and task id, and how they came to be.

    `evidence` is executed, mixed, replayed or missing; `degraded` are the flags of its answers.
    """

    role: Role
    is_builtin: bool
    evidence: str
    scores: Mapping[str, Mapping[str, float]]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOutcome:
    """All arms at one measured point."""

    run_id: str
    commit: str | None
    environment_digest: str | None
    arms: Mapping[str, ArmAtPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How one measure moved between two points. JSON leaves out which tasks moved.

    `difference`, `low` and `high` (95 %) are in tasks; with fractional scores they are sums of
    fractions, and `up` and `down` count tasks that moved at all. `p` is one-sided in the direction
    of the change; `holm_p` is p adjusted for all steps of a report.
    """

    up: int
    down: int
    difference: float
    p: float
    low: float
    high: float
    before: float
    after: float
    n: int
    holm_p: float | None = None
    up_tasks: Annotated[tuple[str, ...], Field(exclude=True)] = ()
    down_tasks: Annotated[tuple[str, ...], Field(exclude=True)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepJudgement:
    """One arm between two points: the change at every measure, and what it may be called."""

    changes: Mapping[str, Change]
    status: StepStatus
    reasons: tuple[str, ...]
    clears_noise: bool
    controls: tuple[Drift, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What steps are judged by: the measure that decides, noise floors by arm, and the seed of
    random sign flips and resamples. A floor is None where no repeat is known."""

    primary: str
    floors: Mapping[str, PooledFloor | None]
    seed: int


def outcome_vector(arm: ArmAtPoint, measure: str) -> tuple[float, ...]:
    """The outcomes of an arm at one measure, by sorted task id."""
    scores = arm.scores[measure]
    return tuple(scores[task] for task in sorted(scores))


def compare_scores(before: Mapping[str, float], after: Mapping[str, float], *, seed: int) -> Change:
    """Compare two points at one measure, on the tasks that both have."""
    tasks = sorted(before.keys() & after.keys())
    if not tasks:
        raise ValueError("two points without a common task cannot be compared")
    first = np.array([before[task] for task in tasks])
    second = np.array([after[task] for task in tasks])
    differences = second - first
    differences[np.abs(differences) < _TOLERANCE] = 0.0
    up = tuple(task for task, value in zip(tasks, differences, strict=True) if value > 0)
    down = tuple(task for task, value in zip(tasks, differences, strict=True) if value < 0)
    total = float(differences.sum())
    n = len(tasks)
    rate = paired_interval(differences, seed)
    return Change(
        up=len(up),
        down=len(down),
        difference=total,
        low=rate.low * n,
        high=rate.high * n,
        p=sign_flip_p(differences if total >= 0 else -differences, seed=seed),
        before=float(first.sum()),
        after=float(second.sum()),
        n=n,
        up_tasks=up,
        down_tasks=down,
    )


def clears_noise(change: Change, floor: PooledFloor | None) -> bool:
    """Whether a change stands out: of its own test, and of the noise floor where one is known.

    A net change must exceed the floor's band with p <= 0.025; a mixed one passes when more tasks
    moved than the floor explains.
    """
    if not change.up and not change.down:
        return False
    if floor is None:
        return change.p <= GATE_ALPHA
    is_net_clear = abs(change.difference) > floor.band_tasks and change.p <= GATE_ALPHA
    return is_net_clear or has_unusual_flips(change.up + change.down, floor)


def judge_controls(
    before: PointOutcome,
    after: PointOutcome,
    *,
    measure: str,
    floors: Mapping[str, PooledFloor | None],
) -> tuple[Drift, ...]:
    """Judge every control and floor arm that was executed at both points."""
    moves = []
    for name, arm in before.arms.items():
        other = after.arms.get(name)
        if other is None or arm.role not in ("control", "floor"):
            continue
        if {arm.evidence, other.evidence} != {"executed"}:
            continue
        change = compare_scores(arm.scores[measure], other.scores[measure], seed=0)
        floor = floors.get(name)
        moves.append(
            judge_drift(
                name,
                up=change.up,
                down=change.down,
                n=change.n,
                flip_rate=0.0 if arm.is_builtin or floor is None else floor.flip_rate_upper,
            )
        )
    return tuple(moves)


def judge_step(
    before: PointOutcome,
    after: PointOutcome,
    *,
    arm: str,
    yardstick: Yardstick,
    unsplit: Sequence[str] = (),
    confounders: Sequence[str] = (),
) -> StepJudgement:
    """Judge one arm between two points."""
    primary, floors = yardstick.primary, yardstick.floors
    mine, theirs = before.arms[arm], after.arms[arm]
    changes = {
        measure: compare_scores(mine.scores[measure], theirs.scores[measure], seed=yardstick.seed)
        for measure in mine.scores
        if measure in theirs.scores
    }
    controls = judge_controls(before, after, measure=primary, floors=floors)
    is_clear = clears_noise(changes[primary], floors.get(arm))
    status, reasons = _status(
        mine,
        theirs,
        change=changes[primary],
        is_clear=is_clear,
        confounders=(*_confounders(before, after, arm), *describe_moved(controls), *confounders),
        unsplit=unsplit,
    )
    return StepJudgement(
        changes=changes,
        status=status,
        reasons=reasons,
        clears_noise=is_clear,
        controls=controls,
    )


def _status(
    mine: ArmAtPoint,
    theirs: ArmAtPoint,
    *,
    change: Change,
    is_clear: bool,
    confounders: Sequence[str],
    unsplit: Sequence[str],
) -> tuple[StepStatus, tuple[str, ...]]:
    stale = [
        f"at its {end} ({at.evidence})"
        for end, at in (("start", mine), ("end", theirs))
        if at.evidence != "executed"
    ]
    if stale:
        return "unverified", (f"its answers were not executed {' and '.join(stale)}",)
    if confounders:
        return "confounded", tuple(confounders)
    if not change.up and not change.down:
        return "unchanged", ()
    if not is_clear:
        return "below_noise", ()
    if unsplit:
        return "bundle", tuple(unsplit)
    return "changed", ()


def _confounders(before: PointOutcome, after: PointOutcome, arm: str) -> tuple[str, ...]:
    found = []
    if before.environment_digest != after.environment_digest:
        found.append("its ends were measured in different environments")
    flags = before.arms[arm].degraded, after.arms[arm].degraded
    if flags[0] != flags[1]:
        words = [", ".join(names) or "none" for names in flags]
        found.append(f"its ends ran in different degraded states ({words[0]} → {words[1]})")
    return tuple(found)


def describe_moved(controls: Sequence[Drift]) -> tuple[str, ...]:
    """The controls that moved, in words."""
    return tuple(
        f"the control {move.arm} moved ({move.up} up, {move.down} down)"
        for move in controls
        if move.verdict == "DRIFT"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SumCheck:
    """Whether the steps add up to the change between the ends, in tasks.

    `churn` is how many ups and downs of the steps are more than those of the ends; `flapping_tasks`
    are the tasks that changed more than once.
    """

    steps_difference: float
    ends_difference: float
    adds_up: bool
    churn: int
    flapping_tasks: tuple[str, ...]


def check_sum(points: Sequence[Mapping[str, float]]) -> SumCheck:
    """Check that the steps between successive points add up."""
    steps = [compare_scores(before, after, seed=0) for before, after in pairwise(points)]
    ends = compare_scores(points[0], points[-1], seed=0)
    total = sum(step.difference for step in steps)
    moves = [task for step in steps for task in (*step.up_tasks, *step.down_tasks)]
    return SumCheck(
        steps_difference=total,
        ends_difference=ends.difference,
        adds_up=abs(total - ends.difference) < 1e-6,
        churn=len(moves) - ends.up - ends.down,
        flapping_tasks=tuple(sorted({task for task in moves if moves.count(task) > 1})),
    )


V = TypeVar("V", bound=Hashable)


def next_points(
    points: int, known: Mapping[int, V], differ: Callable[[V, V], bool] = ne
) -> tuple[int, ...]:
    """List the points to run next: the midpoint of every open interval whose ends differ."""
    for end in (0, points - 1):
        if end not in known:
            raise ValueError(f"point {end} of {points} must be measured before bisecting")
    places = sorted(known)
    return tuple(
        (left + right) // 2
        for left, right in pairwise(places)
        if right - left > 1 and differ(known[left], known[right])
    )


def collapse_equal(trees: Sequence[Hashable]) -> tuple[tuple[int, ...], ...]:
    """Group neighbouring points whose product tree is the same: one of them stands for all."""
    groups: list[list[int]] = []
    for place, tree in enumerate(trees):
        if groups and trees[groups[-1][-1]] == tree:
            groups[-1].append(place)
        else:
            groups.append([place])
    return tuple(tuple(group) for group in groups)
