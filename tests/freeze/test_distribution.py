"""The answer distribution, and when it warns."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.freeze.distribution import AnswerCount, ItemCount, describe_distribution
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.records import AnswerKind, GoldItem, Task


def make_tasks(*golds: tuple[str, ...], answer: AnswerKind = "set", **strata: str) -> list[Task]:
    return [
        Task(
            id=f"t{n}",
            query="q",
            answer=answer,
            gold=tuple(GoldItem(item=item) for item in gold),
            strata=strata,
        )
        for n, gold in enumerate(golds)
    ]


def tasks_by_count(*counts: int) -> list[Task]:
    return make_tasks(*[(f"s{n}",) for n, count in enumerate(counts) for _ in range(count)])


@pytest.mark.parametrize(
    ("counts", "top_share", "effective", "simpson"),
    [
        ([19, 1], 0.95, 1.2195906179141718, 1.1049723756906078),
        ([3, 3, 3, 3, 2, 2, 2, 2], 0.15, 7.840526816831157, 7.6923076923076925),
        ([5, 5, 5, 5], 0.25, 4.0, 4.0),
        ([7], 1.0, 1.0, 1.0),
    ],
)
def test_describe_distribution_known_counts_match_published_vectors(
    counts: list[int], top_share: float, effective: float, simpson: float
) -> None:
    """Top share and both effective numbers agree with values computed elsewhere."""
    got = describe_distribution(tasks_by_count(*counts))
    assert got.shapes == len(counts)
    assert got.top_share == pytest.approx(top_share, abs=1e-12)
    assert got.effective_shapes == pytest.approx(effective, abs=1e-10)
    assert got.inverse_simpson == pytest.approx(simpson, abs=1e-10)


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=3).map(tuple), min_size=1, max_size=30))
def test_describe_distribution_top_share_is_best_constant_exact(
    golds: list[tuple[str, ...]],
) -> None:
    """The best constant strategy scores exactly the top share on exact match."""
    tasks = make_tasks(*golds)
    best = max(sum(task.shape == shape for task in tasks) for shape in {t.shape for t in tasks})
    got = describe_distribution(tasks)
    assert got.top_share == best / len(tasks)
    assert 1 - 1e-9 <= got.inverse_simpson <= got.effective_shapes + 1e-9 <= got.shapes + 2e-9


def test_describe_distribution_lists_five_commonest_with_ties_by_name() -> None:
    """Answers are whole shapes, items are counted once a task, equal counts go by name."""
    golds = [("a", "b")] * 3 + [("b", "a", "a"), ("c",), ("d",), ("e",), ("f",), ()]
    got = describe_distribution(make_tasks(*golds))
    assert got.commonest_answers == (
        AnswerCount(answer=("a", "b"), count=4),
        AnswerCount(answer=(), count=1),
        AnswerCount(answer=("c",), count=1),
        AnswerCount(answer=("d",), count=1),
        AnswerCount(answer=("e",), count=1),
    )
    expected = Counter({"a": 4, "b": 4, "c": 1, "d": 1, "e": 1})
    assert got.commonest_items == tuple(
        ItemCount(item=item, count=count) for item, count in expected.items()
    )


def test_describe_distribution_one_dominant_answer_warns() -> None:
    """The sample of the article, nineteen of twenty alike, warns on both counts."""
    golds = [("web", "legacy", "admin")] * 19 + [("web",)]
    warnings = describe_distribution(make_tasks(*golds)).warnings
    assert len(warnings) == 2
    assert "19 of 20 tasks (95%): admin + legacy + web" in warnings[0]
    assert "1.1 equally common" in warnings[1]
    assert ": nothing;" in describe_distribution(make_tasks((), (), ("a",))).warnings[0]
    with pytest.raises(PanelError, match="no task to describe"):
        describe_distribution([])


def test_describe_distribution_hub_file_warns_for_rankings_only() -> None:
    """Unique shapes that share one file fool only the shape counts."""
    golds = [("core.py", f"f{n}.py") for n in range(4)] + [(f"g{n}.py",) for n in range(6)]
    (warning,) = describe_distribution(make_tasks(*golds, answer="ranking")).warnings
    assert "core.py is gold in 4 of 10 tasks (40%)" in warning
    assert describe_distribution(make_tasks(*golds)).warnings == ()


def test_describe_distribution_balanced_panel_does_not_warn() -> None:
    """At exactly the limits nothing is said."""
    got = describe_distribution(tasks_by_count(5, 5, 5))
    assert got.inverse_simpson == 3
    assert got.warnings == ()
    half = describe_distribution(tasks_by_count(6, 2, 2, 2)).warnings
    assert half == ()


def test_describe_distribution_share_of_path_naming_queries_comes_from_strata() -> None:
    """Any mark but "no" names a path; a panel without marks has no share, not zero."""
    named = make_tasks(("a",), names_gold="path") + make_tasks(("b",), names_gold="basename")
    plain = make_tasks(("c",), ("d",), names_gold="no")
    assert describe_distribution(named + plain).names_gold_share == 0.5
    assert describe_distribution(make_tasks(("a",))).names_gold_share is None
