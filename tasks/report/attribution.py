"""What a component did: the paired effect of removing it, where it was used and elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tasks.analyse.effects import Effect, describe_effect, split_effect
from tasks.analyse.multiplicity import adjust_holm
from tasks.config_ablation import find_differences
from tasks.report.model import AblationPart, EffectPart
from tasks.report.record import RunRecord
from tasks.report.retries import is_retried
from tasks.report.scored import ScoredArm
from tasks.run.capture import Capture

SECOND_CALL = "a second call"
RETRY_FACTORS = ("retry", "retries")


def build_ablations(
    record: RunRecord, arms: Sequence[ScoredArm], *, is_measurement: bool, seed: int
) -> list[AblationPart]:
    """The effects of all declared ablations, in the order of the configuration."""
    by_name = {arm.config.name: arm for arm in arms}
    parts = [
        _ablation(record, arm, by_name[arm.config.ablation_of], is_measurement, seed)
        for arm in arms
        if arm.config.ablation_of is not None
    ]
    adjusted = iter(adjust_holm([p for part in parts for p in _known_p(part.effects)]))
    return [
        part.model_copy(
            update={
                "effects": [
                    effect
                    if effect.p is None
                    else effect.model_copy(update={"holm_p": next(adjusted)})
                    for effect in part.effects
                ]
            }
        )
        for part in parts
    ]


def _known_p(effects: Iterable[EffectPart]) -> list[float]:
    return [effect.p for effect in effects if effect.p is not None]


def _ablation(
    record: RunRecord, arm: ScoredArm, full: ScoredArm, is_measurement: bool, seed: int
) -> AblationPart:
    factors = find_differences(arm.config, full.config)
    component, is_used = _use_of(factors)
    effects: list[EffectPart] = []
    if is_measurement and arm.is_comparable and full.is_comparable:
        effects.append(effect_part("all", describe_effect(full.scores, arm.scores, seed=seed)))
        if is_used is not None:
            used = used_tasks(record, full.captures, is_used)
            on_used, on_others = split_effect(full.scores, arm.scores, used, seed=seed)
            effects += [effect_part("used", on_used), effect_part("unused", on_others)]
    return AblationPart(
        arm=arm.config.name,
        of=full.config.name,
        factors=factors,
        is_bundle=len(factors) > 1,
        component=component,
        effects=effects,
    )


def _use_of(
    factors: Sequence[str],
) -> tuple[str | None, Callable[[Capture], bool] | None]:
    """What tells that a component was used: of a retry, the second call."""
    if any(factor in RETRY_FACTORS for factor in factors):
        return SECOND_CALL, is_retried
    return None, None


def used_tasks(
    record: RunRecord, captures: Iterable[Capture], is_used: Callable[[Capture], bool]
) -> list[bool]:
    """For each task in panel order whether a component was used in any of its trials."""
    used = {capture.task_id for capture in captures if is_used(capture)}
    return [task.id in used for task in record.tasks]


def effect_part(tasks: str, effect: Effect) -> EffectPart:
    """An effect as the report has it."""
    interval = effect.interval
    return EffectPart.model_validate(
        {
            "tasks": tasks,
            "n": effect.n,
            "kept": effect.kept,
            "gained": effect.gained,
            "regressed": effect.regressed,
            "residual": effect.residual,
            "difference": effect.difference,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "p": effect.p,
        }
    )
