"""Dev and sealed."""

from __future__ import annotations

import datetime as dt
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.config import SplitConfig
from coldrun.tasks.freeze.sample import split_tasks, task_instant
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import GoldItem, Task


def make_task(id_: str, date: str | None) -> Task:
    return Task(id=id_, query="q", answer="set", gold=(GoldItem(item="a"),), date=date)


instants = st.datetimes(timezones=st.just(dt.UTC)).map(dt.datetime.isoformat)
panels = st.lists(st.none() | instants, min_size=2, max_size=30).map(
    lambda rows: [make_task(f"t{n}", date) for n, date in enumerate(rows)]
)
fractions = st.floats(0.01, 0.99)


@given(panels, fractions, st.randoms())
def test_split_tasks_fraction_partitions_whatever_the_order(
    tasks: list[Task], fraction: float, shuffler: random.Random
) -> None:
    """Every task is in one part, no sealed task is older than a dev task, order is irrelevant."""
    split = SplitConfig(sealed_fraction=fraction)
    dev, sealed = split_tasks(tasks, split)
    shuffled = list(tasks)
    shuffler.shuffle(shuffled)
    assert split_tasks(shuffled, split) == (dev, sealed)
    assert sorted(task.id for task in dev + sealed) == sorted(task.id for task in tasks)
    assert min(map(task_instant, sealed)) >= max(map(task_instant, dev))
    assert abs(len(sealed) - fraction * len(tasks)) <= 1


def test_split_tasks_fraction_of_the_design_seals_thirty_seven_of_108() -> None:
    """0.34 of 108 tasks are 36.72, so 37; the newest ones."""
    tasks = [make_task(f"t{n:03}", f"2024-01-01T00:{n // 60:02}:{n % 60:02}Z") for n in range(108)]
    dev, sealed = split_tasks(tasks, SplitConfig(sealed_fraction=0.34))
    assert len(dev) == 71
    assert {task.id for task in sealed} == {f"t{n:03}" for n in range(71, 108)}


def test_split_tasks_same_instant_goes_by_id() -> None:
    """Equal dates are divided by id, so that the division is one and the same everywhere."""
    tasks = [make_task(id_, "2024-01-01T00:00:00Z") for id_ in ("d", "b", "a", "c")]
    dev, sealed = split_tasks(tasks, SplitConfig(sealed_fraction=0.5))
    assert [task.id for task in sealed] == ["a", "b"]
    assert [task.id for task in dev] == ["c", "d"]


def test_split_tasks_after_day_seals_what_follows_it_in_utc() -> None:
    """The day itself is dev; an instant that is the next day in UTC is sealed."""
    tasks = [
        make_task("old", "2026-08-01T23:59:59Z"),
        make_task("undated", None),
        make_task("new", "2026-08-01T23:30:00-02:00"),
    ]
    dev, sealed = split_tasks(tasks, SplitConfig(sealed_after=dt.date(2026, 8, 1)))
    assert [task.id for task in sealed] == ["new"]
    assert [task.id for task in dev] == ["old", "undated"]


def test_split_tasks_without_split_seals_nothing() -> None:
    """No [split] table: all tasks are dev, newest first."""
    tasks = [make_task("a", "2024-01-01"), make_task("b", "2025-01-01")]
    dev, sealed = split_tasks(tasks, None)
    assert [task.id for task in dev] == ["b", "a"]
    assert sealed == ()


@pytest.mark.parametrize(
    ("dates", "split", "message"),
    [
        (["2024-01-01"], SplitConfig(sealed_fraction=0.5), "at least 2"),
        ([None, None], SplitConfig(sealed_after=dt.date(2024, 1, 1)), "no task has one"),
        (["2024-01-01"] * 2, SplitConfig(sealed_after=dt.date(2024, 1, 1)), "seal no task"),
        (["2024-01-02"] * 2, SplitConfig(sealed_after=dt.date(2024, 1, 1)), "seal every task"),
        (["yesterday"] * 2, SplitConfig(sealed_fraction=0.5), "ISO 8601"),
    ],
)
def test_split_tasks_impossible_split_is_refused(
    dates: list[str | None], split: SplitConfig, message: str
) -> None:
    """A part that would be empty, or dates that cannot be read, stop the freeze."""
    with pytest.raises(PanelError, match=message):
        split_tasks([make_task(f"t{n}", date) for n, date in enumerate(dates)], split)
