"""Ablations and uses of components, as a report has them."""

from __future__ import annotations

from typing import Literal

from coldrun.tasks.judge.gate_model import Part
from coldrun.tasks.lib.records import Role


class EffectPart(Part):
    """A paired change on some tasks, from one arm to another, as transitions.

    `tasks` says which: all, those in which the component was used, or the others. `difference` is a
    rate; it, its limits and `p` are null where there is no task. `holm_p` is over all effects of
    the report.
    """

    tasks: Literal["all", "used", "unused"]
    n: int
    kept: int
    gained: int
    regressed: int
    residual: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    holm_p: float | None = None


class AblationPart(Part):
    """From the arm `of` to `arm`, which differs from it in `factors` and in nothing else.

    `is_bundle`: in several; what they did together belongs to none of them alone. `component` is
    what tells used tasks from others, null where nothing does. There are no effects where the run
    or one of the two measured nothing.
    """

    arm: str
    of: str
    factors: list[str]
    is_bundle: bool
    component: str | None
    effects: list[EffectPart]


class UsedAgainstPart(Part):
    """From another arm to the one that uses a component, where it was used and where it was not."""

    arm: str
    role: Role
    effects: list[EffectPart]


class UsagePart(Part):
    """In how many tasks an arm used the component that it declares; `events` counts the uses.

    A task counts as used when any of its trials used it. `is_exercised` is false below the declared
    `min_use_share`: the arm's comparisons tell nothing of the component then. `reached_by` has the
    other arms that used it, with the number of tasks.
    """

    arm: str
    component: str
    used: int
    n: int
    events: int
    min_use_share: float
    is_exercised: bool
    reached_by: dict[str, int]
    against: list[UsedAgainstPart]
