"""Paired effects: transitions with an interval and an exact p, by hand and against the parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.judge.attribution import describe_effect

OUTCOMES = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(OUTCOMES)
def test_describe_effect_counts_every_task_once_and_its_strata_add_up(
    rows: list[tuple[bool, bool, bool]],
) -> None:
    """Against counts by hand; used and unused tasks are all tasks."""
    before, after = (np.array([row[place] for row in rows], float) for place in (0, 1))
    is_used = np.array([row[2] for row in rows])

    found = describe_effect("all", before, after, seed=0)
    used = describe_effect("used", before[is_used], after[is_used], seed=0)
    unused = describe_effect("unused", before[~is_used], after[~is_used], seed=0)

    pairs = [row[:2] for row in rows]
    assert found.kept == pairs.count((True, True))
    assert found.gained == pairs.count((False, True))
    assert found.regressed == pairs.count((True, False))
    assert found.residual == pairs.count((False, False))
    for name in ("n", "kept", "gained", "regressed", "residual"):
        assert getattr(used, name) + getattr(unused, name) == getattr(found, name)


def test_describe_effect_of_fractions_counts_what_moved_and_no_float_dust() -> None:
    """A task that was right and got better is gained; the order of adding trials moves nothing."""
    before, after = np.array([0.2, 0.5, 0.0, 1.0]), np.array([0.4, 0.5, 0.0, 0.5])
    found = describe_effect("all", before, after, seed=0)
    assert (found.kept, found.gained, found.regressed, found.residual) == (1, 1, 1, 1)
    assert found.difference == pytest.approx(-0.075)
    dust = np.array([(0.1 + 0.2 + 0.3) / 3]), np.array([(0.3 + 0.2 + 0.1) / 3])
    assert describe_effect("all", *dust, seed=1).difference == 0
    with pytest.raises(ValueError, match="paired arms need the same tasks: 2, 3"):
        describe_effect("all", np.zeros(2), np.zeros(3), seed=0)
