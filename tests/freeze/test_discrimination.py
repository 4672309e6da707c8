"""What a pilot run says about the panel."""

from __future__ import annotations

import pytest

from coldrun.tasks.freeze.distribution import describe_discrimination, warn_of_size

ARMS = [
    [1, 1, 1, 0, 0, 1, 1, 0, 1, 0],
    [1, 1, 0, 0, 0, 1, 0, 0, 1, 0],
    [1, 0, 1, 0, 0, 1, 1, 1, 1, 0],
    [1, 0, 0, 0, 0, 1, 0, 0, 1, 0],
]


def as_outcomes(rows: list[list[int]]) -> dict[str, dict[str, bool]]:
    return {
        f"arm{n}": {f"t{task}": bool(value) for task, value in enumerate(row)}
        for n, row in enumerate(rows)
    }


def test_describe_discrimination_published_panel_matches() -> None:
    """Four arms on ten tasks: three solved by all, three by none, four that discriminate."""
    got = describe_discrimination(as_outcomes(ARMS))
    assert got.all_solve == ("t0", "t5", "t8")
    assert got.none_solve == ("t3", "t4", "t9")
    assert got.split == ("t1", "t2", "t6", "t7")
    assert (got.possible_discordance, got.observed_discordance) == (4, 4)
    assert "only 4 of 10 tasks" in got.warnings[0]


def test_describe_discrimination_single_arm_has_no_discordance() -> None:
    """One arm differs from no other: undefined, and nothing to warn of yet."""
    got = describe_discrimination(as_outcomes(ARMS[:1]))
    assert got.observed_discordance is None
    assert got.warnings == ()


def test_describe_discrimination_six_split_tasks_do_not_warn() -> None:
    """Six discordant tasks can be decisive: 0.5 ** 6 is below 0.025."""
    got = describe_discrimination(as_outcomes([[1] * 6, [0] * 6]))
    assert got.observed_discordance == 6
    assert got.warnings == ()


def test_warn_of_size_five_tasks_cannot_separate_anything() -> None:
    """A panel of five warns before any run; one of six does not."""
    assert "5 tasks cannot separate" in warn_of_size(5)[0]
    assert warn_of_size(6) == ()
    assert describe_discrimination(as_outcomes([[1] * 5])).warnings == warn_of_size(5)


def test_describe_discrimination_different_tasks_are_refused() -> None:
    """Arms that answered other tasks cannot be compared."""
    with pytest.raises(ValueError, match="differ in their tasks"):
        describe_discrimination({"a": {"t0": True}, "b": {"t1": True}})
    with pytest.raises(ValueError, match="no arm"):
        describe_discrimination({})
    with pytest.raises(ValueError, match="no task"):
        describe_discrimination({"a": {}})
