"""The post-stratified estimate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.freeze.production import (
    MissingStratum,
    by_commonest_item,
    by_shape,
    post_stratified,
)
from coldrun.tasks.lib.records import GoldItem, Task


def make_task(id_: str, *gold: str) -> Task:
    return Task(id=id_, query="q", answer="set", gold=tuple(GoldItem(item=item) for item in gold))


def test_post_stratified_published_vector_matches() -> None:
    """Shares 0.6, 0.3, 0.1 over ten sampled tasks give 0.5833 with a standard error of 0.1833."""
    outcomes = {"a": [1, 1, 0, 1], "b": [0, 1, 0], "c": [0, 0, 1]}
    sizes = {"a": 60, "b": 30, "c": 10}
    population = [make_task(f"{s}{n}", s) for s, size in sizes.items() for n in range(size)]
    scores = {f"{s}{n}": float(v) for s, values in outcomes.items() for n, v in enumerate(values)}
    sample = [task for task in population if task.id in scores]
    got = post_stratified(scores, sample, population)
    assert got.sample_mean == 0.5
    assert got.estimate == pytest.approx(0.5833333333333333, abs=1e-9)
    assert got.standard_error == pytest.approx(0.18333333333333335, abs=1e-9)
    assert (got.coverage, got.missing) == (1.0, ())
    assert got.lowest == got.highest == got.estimate


def test_post_stratified_missing_shape_is_reported_and_bounded() -> None:
    """A shape that the sample never reached is named with its share, and bounds the estimate."""
    population = [make_task(f"a{n}", "a") for n in range(6)]
    population += [make_task(f"b{n}", "b") for n in range(2)]
    population += [make_task(f"c{n}", "c", "a") for n in range(2)]
    sample = [population[0], population[1], population[6], population[7]]
    scores = {"a0": 1.0, "a1": 1.0, "b0": 0.0, "b1": 0.0}
    got = post_stratified(scores, sample, population)
    assert got.coverage == pytest.approx(0.8)
    assert got.missing == (MissingStratum(stratum='["a", "c"]', share=0.2),)
    assert got.estimate == pytest.approx(0.75)
    assert (got.lowest, got.highest) == (pytest.approx(0.6), pytest.approx(0.8))


def test_post_stratified_single_task_stratum_has_no_standard_error() -> None:
    """One task shows no spread: undefined, not zero."""
    population = [make_task("a", "a"), make_task("b", "b"), make_task("b2", "b")]
    got = post_stratified({"a": 1.0, "b": 0.5}, population[:2], population)
    assert got.standard_error is None
    assert got.estimate == pytest.approx((1 + 2 * 0.5) / 3)


def test_by_commonest_item_groups_rankings_by_their_hub() -> None:
    """Unique shapes around one file are one stratum; nothing is a stratum of its own."""
    population = [make_task("1", "core", "x"), make_task("2", "core", "y"), make_task("3", "z")]
    stratify = by_commonest_item(population)
    assert [stratify(task) for task in population] == ["core", "core", "z"]
    assert stratify(make_task("4")) == ""
    got = post_stratified({"1": 1.0, "3": 0.0}, population[::2], population, stratify=stratify)
    assert got.coverage == 1.0
    assert got.estimate == pytest.approx(2 / 3)


def test_by_shape_separator_in_item_makes_no_collision() -> None:
    """Two items and one item that looks like them joined are different shapes."""
    assert by_shape(make_task("1", "a", "b")) != by_shape(make_task("2", 'a", "b'))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), min_size=1, max_size=20))
def test_post_stratified_whole_population_gives_plain_mean(rows: list[tuple[str, float]]) -> None:
    """Asking every task leaves nothing to reweight."""
    population = [make_task(f"t{n}", gold) for n, (gold, _) in enumerate(rows)]
    scores = {f"t{n}": score for n, (_, score) in enumerate(rows)}
    got = post_stratified(scores, population, population)
    assert got.estimate == pytest.approx(sum(scores.values()) / len(scores))
    assert got.sample_mean == pytest.approx(got.estimate)


def test_post_stratified_unusable_sample_is_refused() -> None:
    """An empty sample, a stranger and a task without a score are mistakes of the caller."""
    population = [make_task("a", "a")]
    with pytest.raises(ValueError, match="empty sample"):
        post_stratified({}, [], population)
    with pytest.raises(ValueError, match="not in the population"):
        post_stratified({"x": 1.0}, [make_task("x", "a")], population)
    with pytest.raises(ValueError, match="has no score"):
        post_stratified({}, population, population)
