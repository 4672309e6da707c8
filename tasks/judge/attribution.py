"""What a component did: the paired effect of removing it, where it was used and elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coldrun.tasks.config import ArmConfig, ProcessArm
from coldrun.tasks.config.ablation import find_differences
from coldrun.tasks.judge.report_model import (
    AblationPart,
    EffectPart,
    UsagePart,
    UsedAgainstPart,
)
from coldrun.tasks.judge.retries import is_retried
from coldrun.tasks.judge.score_table import ScoredArm
from coldrun.tasks.lib.arrays import FloatArray
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.run_record import RunRecord
from coldrun.tasks.stats.intervals import paired_interval, without_dust
from coldrun.tasks.stats.paired import adjust_holm, sign_flip_p

SECOND_CALL = "second call"
RETRY_FACTORS = ("retry", "retries")

IsUsed = Callable[[Capture], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """What the report says of components; Holm is over all effects in it."""

    ablations: list[AblationPart]
    usage: list[UsagePart]


def attribute(
    record: RunRecord, arms: Sequence[ScoredArm], *, is_measurement: bool, seed: int
) -> Attribution:
    """Describe all declared ablations and components, in the order of the configuration."""
    by_name = {arm.config.name: arm for arm in arms}
    ablations = [
        _ablation(record, arm, by_name[arm.config.ablation_of], is_measurement, seed)
        for arm in arms
        if arm.config.ablation_of is not None
    ]
    usage = [
        _usage(record, arm, arms, is_measurement, seed)
        for arm in arms
        if component_of(arm.config) is not None
    ]
    printed = [part.effects for part in ablations]
    printed += [other.effects for part in usage for other in part.against]
    tested = [effect.p for effects in printed for effect in effects if effect.p is not None]
    adjusted = iter(adjust_holm(tested))
    for effects in printed:
        effects[:] = [
            effect.model_copy(update={"holm_p": None if effect.p is None else next(adjusted)})
            for effect in effects
        ]
    return Attribution(ablations=ablations, usage=usage)


def _ablation(
    record: RunRecord, arm: ScoredArm, full: ScoredArm, is_measurement: bool, seed: int
) -> AblationPart:
    factors = find_differences(arm.config, full.config)
    # a retry was used where there was a second call, else what the whole arm declares
    is_retry = any(factor in RETRY_FACTORS for factor in factors)
    component = SECOND_CALL if is_retry else component_of(full.config)
    effects: list[EffectPart] = []
    if is_measurement and arm.is_comparable and full.is_comparable:
        effects.append(describe_effect("all", full.scores, arm.scores, seed=seed))
        if component is not None:
            is_used = is_retried if is_retry else _uses(component)
            used = used_tasks(record, full.captures, is_used)
            effects += _split(full, arm, used, seed)
    return AblationPart(
        arm=arm.config.name,
        of=full.config.name,
        factors=factors,
        is_bundle=len(factors) > 1,
        component=component,
        effects=effects,
    )


def _usage(
    record: RunRecord,
    arm: ScoredArm,
    arms: Sequence[ScoredArm],
    is_measurement: bool,
    seed: int,
) -> UsagePart:
    component = component_of(arm.config) or ""
    is_used = _uses(component)
    used = used_tasks(record, arm.captures, is_used)
    share = sum(used) / len(used)
    minimum = arm.config.min_use_share if isinstance(arm.config, ProcessArm) else 0.0
    others = [other for other in arms if other is not arm]
    reached = {
        other.config.name: sum(used_tasks(record, other.captures, is_used)) for other in others
    }
    rivals = [
        other
        for other in others
        if other.config.role in ("control", "floor")
        and other.config.ablation_of != arm.config.name
        and other.is_comparable
    ]
    return UsagePart(
        arm=arm.config.name,
        component=component,
        used=sum(used),
        n=len(used),
        events=sum(_count_events(capture, component) for capture in arm.captures),
        min_use_share=minimum,
        is_exercised=share >= minimum - 1e-12,
        reached_by={name: count for name, count in reached.items() if count},
        against=[
            UsedAgainstPart(
                arm=other.config.name,
                role=other.config.role,
                effects=_split(other, arm, used, seed),
            )
            for other in rivals
            if is_measurement and arm.is_comparable
        ],
    )


def component_of(config: ArmConfig) -> str | None:
    """The component that an arm declares to use."""
    return config.uses if isinstance(config, ProcessArm) else None


def _split(
    before: ScoredArm, after: ScoredArm, used: Sequence[bool], seed: int
) -> list[EffectPart]:
    is_used = np.asarray(used, dtype=bool)
    return [
        describe_effect("used", before.scores[is_used], after.scores[is_used], seed=seed),
        describe_effect("unused", before.scores[~is_used], after.scores[~is_used], seed=seed),
    ]


def _uses(component: str) -> IsUsed:
    return lambda capture: _count_events(capture, component) > 0


def _count_events(capture: Capture, component: str) -> int:
    return sum(event.name == component for event in capture.reply.events)


def usage_warnings(usage: Iterable[UsagePart]) -> Iterator[str]:
    """Reasons why a comparison of a component is void."""
    for part in usage:
        if not part.is_exercised:
            yield (
                f"{part.arm}: not exercised, it used {part.component} in {part.used} of "
                f"{counted(part.n, 'task')}, and {part.min_use_share:.0%} was declared: its "
                f"comparisons tell nothing of {part.component}"
            )
        for name, count in part.reached_by.items():
            yield (
                f"{name}: used {part.component} as well, in {count} of "
                f"{counted(part.n, 'task')}: so it is not a valid control of {part.arm}"
            )


def used_tasks(
    record: RunRecord, captures: Iterable[Capture], is_used: Callable[[Capture], bool]
) -> list[bool]:
    """For each task in panel order whether a component was used in any of its trials."""
    used = {capture.task_id for capture in captures if is_used(capture)}
    return [task.id in used for task in record.tasks]


def describe_effect(
    tasks: Literal["all", "used", "unused"], before: FloatArray, after: FloatArray, *, seed: int
) -> EffectPart:
    """Describe the paired change from `before` to `after`, scores of shape (tasks,)."""
    if before.shape != after.shape:
        raise ValueError(f"paired arms need the same tasks: {before.size}, {after.size}")
    differences = without_dust(after - before)
    up, down, right = differences > 0, differences < 0, before > 0
    stays = ~up & ~down
    interval = paired_interval(differences, seed) if before.size else None
    return EffectPart(
        tasks=tasks,
        n=before.size,
        kept=int((stays & right).sum()),
        gained=int(up.sum()),
        regressed=int(down.sum()),
        residual=int((stays & ~right).sum()),
        difference=float(differences.mean()) if before.size else None,
        low=interval and interval.low,
        high=interval and interval.high,
        p=sign_flip_p(differences, seed=seed, alternative="two-sided") if before.size else None,
    )
