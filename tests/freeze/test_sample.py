"""The sampling rules, against slow and obvious versions of themselves."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.freeze.sample import SAMPLE_RULES, sample_tasks
from coldrun.tasks.lib.errors import ConfigError, PanelError
from coldrun.tasks.lib.records import GoldItem, Task

DRAWN_RULES = tuple(rule for rule in SAMPLE_RULES if rule != "all")


def make_task(id_: str, *gold: str, date: str | None = None, answer: str = "set") -> Task:
    return Task(
        id=id_,
        query=f"query of {id_}",
        answer="ranking" if answer == "ranking" else "set",
        gold=tuple(GoldItem(item=item) for item in gold),
        date=date,
    )


golds = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "a+b"]), max_size=3)
dates = st.none() | st.dates().map(str)
panels = st.lists(st.tuples(golds, dates), max_size=24).map(
    lambda rows: [make_task(f"t{n}", *gold, date=date) for n, (gold, date) in enumerate(rows)]
)


def draw(seed: int, what: str, value: object) -> bytes:
    return sha256(json.dumps([seed, what, value], separators=(",", ":")).encode()).digest()


def gold_capped_oracle(tasks: list[Task], size: int, seed: int) -> list[Task]:
    """Look at every task that is left, every time."""
    left, chosen = list(tasks), []
    while left and len(chosen) < size:
        taken = Counter(item for task in chosen for item in task.shape or (None,))
        best = min(
            left,
            key=lambda task: (
                max(taken[item] for item in task.shape or (None,)),
                draw(seed, "task", task.id),
            ),
        )
        left.remove(best)
        chosen.append(best)
    return chosen


def answer_shape_oracle(tasks: list[Task], size: int, seed: int) -> list[Task]:
    """Number the tasks inside their shape, then sort by that number and the shape's hash."""
    keyed = []
    for task in tasks:
        peers = [peer for peer in tasks if peer.shape == task.shape]
        peers.sort(key=lambda peer: draw(seed, "task", peer.id))
        keyed.append((peers.index(task), draw(seed, "shape", list(task.shape)), task))
    keyed.sort(key=lambda row: row[:2])
    return [task for _, _, task in keyed][:size]


@given(panels, st.integers(0, 30), st.integers(0, 5))
def test_sample_tasks_gold_capped_equals_exhaustive_search(
    tasks: list[Task], size: int, seed: int
) -> None:
    """The lazy heap picks what looking at every task at every step picks."""
    got = sample_tasks(tasks, rule="gold-capped", size=size, seed=seed)
    assert list(got) == gold_capped_oracle(tasks, size, seed)


@given(panels, st.integers(0, 30), st.integers(0, 5))
def test_sample_tasks_answer_shape_equals_sorting_by_rank_in_shape(
    tasks: list[Task], size: int, seed: int
) -> None:
    """Round-robin is the order of (place in the shape, hash of the shape)."""
    got = sample_tasks(tasks, rule="answer-shape", size=size, seed=seed)
    assert list(got) == answer_shape_oracle(tasks, size, seed)


@given(panels, st.sampled_from(DRAWN_RULES), st.integers(1, 30), st.integers(0, 5), st.randoms())
def test_sample_tasks_shuffled_panel_gives_same_sample(
    tasks: list[Task], rule: str, size: int, seed: int, shuffler: random.Random
) -> None:
    """Every rule is a function of the set of tasks, not of the order in which they arrive."""
    shuffled = list(tasks)
    shuffler.shuffle(shuffled)
    assert sample_tasks(tasks, rule=rule, size=size, seed=seed) == sample_tasks(
        shuffled, rule=rule, size=size, seed=seed
    )


@given(panels, st.sampled_from(DRAWN_RULES), st.integers(0, 30), st.integers(0, 30))
def test_sample_tasks_smaller_size_gives_prefix(
    tasks: list[Task], rule: str, small: int, more: int
) -> None:
    """Growing a sample keeps what was asked before."""
    large = sample_tasks(tasks, rule=rule, size=small + more, seed=0)
    assert sample_tasks(tasks, rule=rule, size=small, seed=0) == large[:small]


@given(panels, st.sampled_from(SAMPLE_RULES))
def test_sample_tasks_without_size_takes_every_task_once(tasks: list[Task], rule: str) -> None:
    """A rule without a size is an order of the whole panel."""
    got = sample_tasks(tasks, rule=rule, size=None, seed=1)
    assert sorted(task.id for task in got) == sorted(task.id for task in tasks)


@given(panels, st.integers(0, 20))
def test_sample_tasks_one_task_removed_keeps_random_order(tasks: list[Task], index: int) -> None:
    """A task that a new miner no longer finds leaves a hole and moves nothing else."""
    gone = tasks[index % len(tasks)].id if tasks else None
    before = sample_tasks(tasks, rule="random", size=None, seed=3)
    after = sample_tasks(
        [task for task in tasks if task.id != gone], rule="random", size=None, seed=3
    )
    assert list(after) == [task for task in before if task.id != gone]


def test_sample_tasks_answer_shape_covers_every_shape_before_a_second() -> None:
    """Eight shapes and a sample of twenty: three of four of them, two of the others."""
    tasks = [make_task(f"t{n}", f"repo-{n % 8}") for n in range(117)]
    got = sample_tasks(tasks, rule="answer-shape", size=20, seed=0)
    counts = sorted(Counter(task.shape for task in got).values(), reverse=True)
    assert counts == [3, 3, 3, 3, 2, 2, 2, 2]
    assert len({task.shape for task in got[:8]}) == 8


def test_sample_tasks_gold_capped_caps_the_hub_file() -> None:
    """A file that is in nine of ten answers does not fill the sample when others exist."""
    hub = [make_task(f"h{n}", "core.py", f"f{n}.py", answer="ranking") for n in range(90)]
    rest = [make_task(f"r{n}", f"g{n}.py", answer="ranking") for n in range(10)]
    got = sample_tasks(hub + rest, rule="gold-capped", size=11, seed=0)
    assert sum("core.py" in task.shape for task in got) == 1


def test_sample_tasks_gold_capped_many_empty_golds_take_turns() -> None:
    """Tasks whose answer is nothing count as sharing one item, so they do not come first."""
    nothing = [make_task(f"n{n}") for n in range(50)]
    rest = [make_task(f"r{n}", f"repo-{n}") for n in range(10)]
    got = sample_tasks(nothing + rest, rule="gold-capped", size=11, seed=0)
    assert sum(not task.gold for task in got) == 1


def test_sample_tasks_largest_first_repeats_the_articles_mistake() -> None:
    """Nineteen three-repository answers fill nineteen of twenty places."""
    large = [make_task(f"l{n}", "web", "legacy", "admin") for n in range(19)]
    small = [make_task(f"s{n}", f"repo-{n % 7}") for n in range(98)]
    got = sample_tasks(small + large, rule="largest-first", size=20, seed=0)
    assert Counter(task.shape for task in got).most_common(1)[0][1] == 19


def test_sample_tasks_newest_goes_by_instant_with_undated_last() -> None:
    """Offsets are compared as instants; a task without a date is older than all others."""
    tasks = [
        make_task("plain", "a", date="2024-05-01"),
        make_task("undated", "a"),
        make_task("east", "a", date="2024-05-02T01:00:00+05:00"),
        make_task("west", "a", date="2024-05-01T23:00:00-05:00"),
    ]
    got = sample_tasks(tasks, rule="newest", size=None, seed=0)
    assert [task.id for task in got] == ["west", "east", "plain", "undated"]


def test_sample_tasks_other_seed_gives_other_sample() -> None:
    """The seed decides who is drawn."""
    tasks = [make_task(f"t{n}", f"f{n}") for n in range(200)]
    for rule in ("random", "gold-capped", "answer-shape"):
        first = {task.id for task in sample_tasks(tasks, rule=rule, size=20, seed=0)}
        other = {task.id for task in sample_tasks(tasks, rule=rule, size=20, seed=1)}
        assert first != other


def test_sample_tasks_golden_draw_is_stable() -> None:
    """The draw is part of every frozen panel: changing it would change them all."""
    tasks = [make_task(f"t{n}", f"f{n % 3}") for n in range(9)]
    drawn = {
        rule: [task.id for task in sample_tasks(tasks, rule=rule, size=4, seed=7)]
        for rule in ("random", "gold-capped", "answer-shape")
    }
    assert drawn == GOLDEN


GOLDEN = {
    "random": ["t7", "t2", "t3", "t8"],
    "gold-capped": ["t8", "t7", "t6", "t5"],
    "answer-shape": ["t8", "t7", "t6", "t5"],
}


def test_sample_tasks_eighteen_thousand_tasks_is_quick() -> None:
    """Drawing all of a large history stays far below the time it takes to read it."""
    source = random.Random(0)
    tasks = [
        make_task(f"t{n}", *(f"f{int(source.paretovariate(0.7)) % 4000}" for _ in range(3)))
        for n in range(18_000)
    ]
    started = time.process_time()
    sample_tasks(tasks, rule="gold-capped", size=None, seed=0)
    assert time.process_time() - started < 5  # ten times what it takes; quadratic took 140


@pytest.mark.parametrize(
    ("ids", "rule", "error", "message"),
    [
        ("ab", "all", ConfigError, "leave `size` out"),
        ("", "balanced", ConfigError, "use one of gold-capped"),
        ("aa", "random", PanelError, "'a' is there twice"),
    ],
)
def test_sample_tasks_impossible_sample_is_refused(
    ids: str, rule: str, error: type[Exception], message: str
) -> None:
    """A size that `all` would cut, an unknown rule, two tasks under one id."""
    with pytest.raises(error, match=message):
        sample_tasks([make_task(id_, "x") for id_ in ids], rule=rule, size=1, seed=0)
