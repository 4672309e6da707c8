"""Why answers missed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.judge.misses import MISS_CLASSES, NAMES_GOLD, classify_miss, count_misses
from coldrun.tasks.judge.score_table import Answered
from coldrun.tasks.lib.records import AnswerKind, GoldItem, Task
from coldrun.tasks.stats.measures import parse_measure

HIT_AT_5 = parse_measure("hit@5")
EXACT = parse_measure("exact")


def make_task(*gold: str, answer: AnswerKind = "ranking", names_gold: str = "no") -> Task:
    return Task(
        id="t",
        query="q",
        answer=answer,
        gold=tuple(GoldItem(item=item) for item in gold),
        strata={"names_gold": names_gold},
    )


def label(answered: Answered | None, task: Task, measure: object = HIT_AT_5) -> str | None:
    return classify_miss(answered, task, measure)  # type: ignore[arg-type]


def ranking(rank: int, length: int = 40) -> Answered:
    items = [f"x{number}" for number in range(1, length + 1)]
    items[rank - 1] = "gold"
    return Answered(items=tuple(items))


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (1, None),
        (5, None),
        (6, "below_cut_6_10"),
        (10, "below_cut_6_10"),
        (11, "below_cut_11_20"),
        (20, "below_cut_11_20"),
        (21, "below_cut_21_up"),
        (40, "below_cut_21_up"),
    ],
)
def test_classify_miss_ranking_gives_the_band_below_the_cut(
    rank: int, expected: str | None
) -> None:
    """A hit is no miss; below the cut-off the band doubles."""
    assert label(ranking(rank), make_task("gold")) == expected


def test_classify_miss_names_the_first_reason_that_holds() -> None:
    """A failure is never taken for a wrong answer, nor silence for a search that found nothing."""
    task = make_task("gold")
    assert label(None, task) == "missing"
    assert label(Answered(items=(), is_infra=True), task) == "infra"
    assert label(Answered(items=()), task) == "abstained"
    assert label(Answered(items=("a",)), task) == "not_retrieved"
    assert label(Answered(items=("a",)), make_task()) == "unsolvable"


def test_classify_miss_set_tells_parts_from_excess() -> None:
    """Sets miss by what is lacking or by what is too much; nothing can be right."""
    task = make_task("a", "b", answer="set")
    assert label(Answered(items=("b", "a")), task, EXACT) is None
    assert label(Answered(items=("a", "b", "c")), task, EXACT) == "too_many_items"
    assert label(Answered(items=("a", "c")), task, EXACT) == "part_of_gold"
    assert label(Answered(items=("c",)), task, EXACT) == "not_retrieved"
    assert label(Answered(items=()), task, EXACT) == "abstained"
    assert label(Answered(items=()), make_task(answer="set"), EXACT) is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["no", "path"]),
            st.none()
            | st.builds(Answered, items=st.just(()), is_infra=st.booleans())
            | st.integers(1, 40).map(ranking),
        )
    )
)
def test_count_misses_classes_add_up_to_what_was_missed(
    answers: list[tuple[str, Answered | None]],
) -> None:
    """Every miss is in exactly one class; queries that name gold are counted beside them."""
    pairs = [(make_task("gold", names_gold=named), answered) for named, answered in answers]
    misses = [(task, classify_miss(answered, task, HIT_AT_5)) for task, answered in pairs]
    counts = count_misses(misses)
    missed = [task for task, miss in misses if miss is not None]
    named = counts.pop(NAMES_GOLD, 0)
    assert sum(counts.values()) == len(missed)
    assert named == sum(task.strata["names_gold"] == "path" for task in missed)
    assert all(any(found.startswith(kind) for kind in MISS_CLASSES) for found in counts)
    hits = sum(
        HIT_AT_5.score(answered.items, task.gold_grades) or 0.0
        for task, answered in pairs
        if answered is not None
    )
    assert hits == len(pairs) - len(missed)
