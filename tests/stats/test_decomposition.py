"""What a change between two points may be called."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.stats.decomposition import (
    ArmAtPoint,
    PointOutcome,
    Yardstick,
    check_sum,
    clears_noise,
    compare_scores,
    judge_step,
)
from coldrun.tasks.stats.noise import PooledFloor, pool_noise_floor


def _scores(passed: int, n: int = 71, start: int = 0) -> dict[str, float]:
    return {f"t{number:02}": float(start <= number < start + passed) for number in range(n)}


def _point(scores: dict[str, float], **values: Any) -> PointOutcome:
    control = values.pop("control", 30)
    environment = values.pop("environment", "sha256:e")
    arm = {"role": "candidate", "is_builtin": False, "evidence": "executed", **values}
    return PointOutcome(
        run_id="r",
        commit="c",
        environment_digest=environment,
        arms={
            "tool": ArmAtPoint(scores={"hit@5": scores}, **arm),
            "search": ArmAtPoint(
                role="control",
                is_builtin=True,
                evidence="executed",
                scores={"hit@5": _scores(control)},
            ),
        },
    )


def _floor(flips: int = 0, n: int = 71) -> PooledFloor:
    table = np.zeros((2, n))
    table[1, :flips] = 1
    floor = pool_noise_floor([table])
    assert floor is not None
    return floor


def _judge(
    before: PointOutcome, after: PointOutcome, floor: PooledFloor | None, **more: Any
) -> Any:
    yardstick = Yardstick(primary="hit@5", floors={"tool": floor}, seed=1)
    return judge_step(before, after, arm="tool", yardstick=yardstick, **more)


@pytest.mark.parametrize(
    ("up", "is_clear"), [(13, True), (6, True), (4, False), (3, False), (1, False)]
)
def test_noise_floor_of_the_article_decides_its_steps(up: int, is_clear: bool) -> None:
    """With one flip in 71 the band is 4: +13 and +6 stand out, +3 and +1 do not."""
    floor = _floor(flips=1)
    assert floor.band_tasks == 4
    step = _judge(_point(_scores(19)), _point(_scores(19 + up)), floor)
    assert step.status == ("changed" if is_clear else "below_noise")
    assert step.changes["hit@5"].p == 0.5**up


def test_as_many_gains_as_losses_are_seen_by_their_number() -> None:
    """Ten up and ten down have a net of zero, and are no noise."""
    step = _judge(_point(_scores(20)), _point(_scores(20, start=10)), _floor())
    change = step.changes["hit@5"]
    assert (change.up, change.down, change.difference) == (10, 10, 0)
    assert step.status == "changed"
    lost = _judge(_point(_scores(38)), _point(_scores(30)), _floor(), unsplit=["all failed"])
    assert lost.changes["hit@5"].down_tasks == tuple(f"t{number}" for number in range(30, 38))
    assert (lost.status, lost.reasons) == ("bundle", ("all failed",))


@pytest.mark.parametrize(
    ("before", "after", "status", "reason"),
    [
        ({"evidence": "replayed"}, {}, "unverified", "at its start (replayed)"),
        ({}, {"evidence": "mixed"}, "unverified", "at its end (mixed)"),
        ({}, {"environment": "sha256:f"}, "confounded", "different environments"),
        ({}, {"degraded": ("fallback",)}, "confounded", "degraded states (none → fallback)"),
        ({}, {"control": 31}, "confounded", "control search moved (1 up, 0 down)"),
    ],
)
def test_doubtful_ends_outweigh_the_change(
    before: dict[str, Any], after: dict[str, Any], status: str, reason: str
) -> None:
    """A clear gain is no finding when an end was not executed or is not comparable."""
    step = _judge(_point(_scores(10), **before), _point(_scores(40), **after), _floor())
    assert step.status == status
    assert reason in step.reasons[0]


def test_without_a_floor_the_test_alone_decides() -> None:
    """Nothing was run twice: p <= 0.025 is all there is."""
    assert _judge(_point(_scores(10)), _point(_scores(16)), None).status == "changed"
    assert _judge(_point(_scores(10)), _point(_scores(15)), None).status == "below_noise"
    assert _judge(_point(_scores(10)), _point(_scores(10)), None).status == "unchanged"


@given(
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=6),
)
def test_steps_always_add_up(states: list[list[bool]]) -> None:
    """The nets of the steps telescope; churn is what the steps have beyond the ends."""
    points = [{f"t{n}": float(value) for n, value in enumerate(row)} for row in states]
    found = check_sum(points)
    moves = sum(sum(a != b for a, b in zip(x, y, strict=True)) for x, y in pairwise(states))
    ends = sum(a != b for a, b in zip(states[0], states[-1], strict=True))
    assert found.adds_up
    assert found.churn == moves - ends >= 0


def test_fractional_scores_are_summed_and_tested_by_sign_flips() -> None:
    """Trial averages: the difference is a sum of fractions, and p exists."""
    before = {f"t{n}": 0.5 for n in range(12)}
    after = {f"t{n}": 0.5 + (0.25 if n < 8 else 0.1) for n in range(12)}
    change = compare_scores(before, after, seed=3)
    assert change.difference == pytest.approx(2.4)
    assert change.up == 12
    assert change.p == pytest.approx(2**-12)
    assert change.low <= change.difference <= change.high
    assert clears_noise(change, None)
    single = compare_scores({"a": 0.25}, {"a": 0.75}, seed=0)
    assert (single.difference, single.low, single.high) == (0.5, -1, 1)
    with pytest.raises(ValueError, match="common task"):
        compare_scores({"a": 1.0}, {"b": 1.0}, seed=0)
