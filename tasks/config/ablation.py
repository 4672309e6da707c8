"""One-factor ablations: two arms that differ in what is declared, and in nothing else. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from coldrun.tasks.config.arm_config import DESCRIPTIVE_KEYS, ArmConfig

FREE_KEYS = ("name", "role", "component", *DESCRIPTIVE_KEYS)
"""What two arms may differ in without being another configuration."""

PART_OF = {"failure_signal": "retry", "retry_prompt": "retry"}
"""Settings that cannot be there without another one: they go with it."""


def find_differences(arm: ArmConfig, other: ArmConfig) -> list[str]:
    """The configuration keys in which two arms differ, dotted where they are nested, sorted.

    A setting that goes with another one is left out where that one differs.
    """
    mine, theirs = _flatten(arm), _flatten(other)
    keys = {*mine, *theirs}
    found = {key for key in keys if mine.get(key, _MISSING) != theirs.get(key, _MISSING)}
    return sorted(key for key in found if PART_OF.get(key) not in found)


def check_ablations(arms: Sequence[ArmConfig]) -> None:
    """Refuse an ablation that is not one: more differs than what is declared."""
    by_name = {arm.name: arm for arm in arms}
    for arm in arms:
        if arm.ablation_of is None:
            continue
        full = by_name.get(arm.ablation_of)
        if full is None or full is arm:
            others = ", ".join(name for name in by_name if name != arm.name) or "none"
            raise ValueError(
                f"arm {arm.name!r}: ablation_of = {arm.ablation_of!r} is no other arm; there are: "
                f"{others}"
            )
        _check(arm, full)


def _check(arm: ArmConfig, full: ArmConfig) -> None:
    differing = find_differences(arm, full)
    for factor in arm.factor:
        if factor in FREE_KEYS:
            raise ValueError(
                f"arm {arm.name!r}: factor = {factor!r} is no part of what an arm does"
            )
        if not any(_covers(factor, key) for key in differing):
            raise ValueError(f"arm {arm.name!r}: factor = {factor!r} {_why_not(factor, arm, full)}")
    others = [key for key in differing if not any(_covers(name, key) for name in arm.factor)]
    if others:
        bundle = ", ".join(f'"{key}"' for key in differing)
        raise ValueError(
            f"arm {arm.name!r} is no ablation of {full.name!r} by {', '.join(arm.factor)} alone, "
            f"other keys differ as well (a bundle: {', '.join(others)}); make them equal, or "
            f"declare factor = [{bundle}], which is reported as a bundle"
        )


def _covers(factor: str, key: str) -> bool:
    return key == factor or key.startswith(f"{factor}.")


def _why_not(factor: str, arm: ArmConfig, full: ArmConfig) -> str:
    known = sorted({*_flatten(arm), *_flatten(full), *type(arm).model_fields} - {*FREE_KEYS})
    if any(_covers(factor, key) for key in known):
        return f"is the same in {full.name!r}: nothing was removed"
    near = difflib.get_close_matches(factor, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
    return f"is no key of either arm; {hint}"


_MISSING = object()


def _flatten(arm: ArmConfig) -> dict[str, Any]:
    return dict(_leaves(arm.model_dump(mode="json", exclude=set(FREE_KEYS))))


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def find_shared_component(
    name: str, component: str | None, gold_from: Collection[str]
) -> str | None:
    """The component that an arm shares with the gold: its declared one, or its own name."""
    for own in (component, name):
        if own is not None and own in gold_from:
            return own
    return None


def refuse_verdict(name: str, component: str | None, gold_from: Collection[str]) -> str | None:
    """Why an arm gets no verdict on a panel: its own component produced the gold. None: it does."""
    shared = find_shared_component(name, component, gold_from)
    if shared is None:
        return None
    return (
        f"the gold was produced with {shared!r} (`panel.gold_from`), a part of this arm: agreeing "
        "with oneself is no measurement"
    )
