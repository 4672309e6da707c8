"""From a frozen panel to planned arms: what each owes, and under which keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coldrun.tasks.arms.base import Corpus
from coldrun.tasks.lib.errors import LockError
from coldrun.tasks.run.prepare import (
    Setting,
    load_evaluation,
    locate_corpus,
    plan_arms,
    prepare_evaluation_point,
)
from tests.conftest import RepositoryBuilder
from tests.evaluations import CONFIG, EvaluationLab

MINED = """\
[panel]
kind = "commit-files"
repo = "../garden"
base = "v0"
drop = []
"""

STATEFUL = """
[[arm]]
name = "grep"
kind = "grep"

[[arm]]
name = "stateful"
kind = "command"
argv = ["cat"]
order = "fixed"
"""


@pytest.fixture
def garden(new_repository: Callable[..., RepositoryBuilder]) -> RepositoryBuilder:
    repository = new_repository("garden")
    repository.git("tag", "v0", repository.commit("start", {"a.py": "1", "b.py": "1"}))
    repository.commit("mend a", {"a.py": "2"})
    return repository


def plan(lab: EvaluationLab, trials: int = 1) -> list[dict[str, str]]:
    """The key parts of every planned answer."""
    evaluation = lab.load()
    setting = Setting(corpus=locate_corpus(evaluation), point=None, run_id="run")
    arms = plan_arms(evaluation, setting, trials=evaluation.trials(trials))
    return [dict(ask.parts) for arm in arms for ask in arm.asks]


def test_plan_arms_owes_every_task_at_every_trial_under_its_own_key(tmp_path: Path) -> None:
    """Twelve tasks, three trials, no key twice."""
    lab = EvaluationLab(tmp_path).prepare()
    evaluation = lab.load()
    setting = Setting(corpus=Corpus(trees={}), point=None, run_id="run")
    (arm,) = plan_arms(evaluation, setting, trials={"reader": 3})

    asked = [(ask.trial, ask.question.id) for ask in arm.asks]
    assert asked == [(trial, f"t{task:04d}") for trial in range(3) for task in range(12)]
    assert len({ask.key for ask in arm.asks}) == 36


def test_plan_arms_after_gold_changed_has_the_same_keys(tmp_path: Path) -> None:
    """An answer does not depend on what is right."""
    lab = EvaluationLab(tmp_path).prepare()
    before = plan(lab)
    lab.write_tasks(gold=lambda number: ["item-0", "item-1"])
    lab.freeze(force=True)

    assert plan(lab) == before


def test_plan_arms_of_mined_tasks_is_keyed_by_the_frozen_tree(
    tmp_path: Path, garden: RepositoryBuilder
) -> None:
    """The corpus is the tree at base, wherever the clone lies and whatever came later; for an arm
    that reads the log it is the commit."""
    lab = EvaluationLab(tmp_path)
    lab.write(MINED)
    lab.freeze()
    before = plan(lab)
    tree = garden.git("rev-parse", "v0^{tree}")
    commit = garden.git("rev-parse", "v0")
    garden.commit("later", {"c.py": "3"})
    moved = tmp_path / "moved"
    garden.path.rename(moved)
    evaluation = load_evaluation(lab.config, scratch=lab.scratch, repo=str(moved))

    corpora = {
        json.loads(parts["arm"])["kind"]: json.loads(parts["corpus"])["."] for parts in before
    }
    assert corpora == {"bm25": tree, "grep": tree, "history": f"commit:{commit}"}
    assert locate_corpus(evaluation).trees["."].tree == tree


def test_locate_corpus_in_another_repository_names_the_missing_base(
    tmp_path: Path, garden: RepositoryBuilder, new_repository: Callable[..., RepositoryBuilder]
) -> None:
    """`--repo` may name any clone of the frozen history, and no other."""
    lab = EvaluationLab(tmp_path)
    lab.write(MINED)
    lab.freeze()
    other = new_repository("other")
    other.commit("start", {"z.py": "1"})
    evaluation = load_evaluation(lab.config, scratch=lab.scratch, repo=str(other.path))

    with pytest.raises(LockError, match=f"frozen base {garden.git('rev-parse', 'v0')}"):
        locate_corpus(evaluation)


def test_evaluation_without_product_has_no_point(tmp_path: Path) -> None:
    """There is nothing to check out."""
    evaluation = EvaluationLab(tmp_path).prepare().load()

    assert prepare_evaluation_point(evaluation, None) is None


def test_questions_carry_the_largest_cut_off_and_the_seed(tmp_path: Path) -> None:
    """k is what the measures need; gold is not there to carry."""
    lab = EvaluationLab(tmp_path)
    lab.write(
        CONFIG.replace('answer = "set"', "").replace('rule = "all"', 'rule = "all"\nseed = 5')
        + '\n[measure]\nprimary = "hit@5"\nalso = ["hit@12", "mrr@3"]\n'
    )
    lab.write_arm()
    lab.write_tasks(3)
    lab.freeze()

    evaluation = lab.load()
    questions = evaluation.questions(evaluation.config.arms[0])
    assert {(question.k, question.seed, question.answer) for question in questions} == {
        (12, 5, "ranking")
    }


def test_plan_arms_with_a_tree_per_task_asks_along_history_unless_order_is_fixed(
    tmp_path: Path, garden: RepositoryBuilder
) -> None:
    """Neighbours in history share most files; a stateful arm keeps the panel's order."""
    for number in range(9):
        garden.commit(f"mend b the {number}. time", {"b.py": f"{number}\n" * 9})
    lab = EvaluationLab(tmp_path)
    lab.write(MINED.replace('"v0"', '"parent"') + STATEFUL)
    lab.freeze()
    evaluation = lab.load()
    tasks = evaluation.frozen.tasks
    setting = Setting(corpus=locate_corpus(evaluation), point=None, run_id="run")
    grep, stateful = plan_arms(evaluation, setting, trials=evaluation.trials(2))
    along_history = [task.id for task in sorted(tasks, key=lambda task: task.date or "")]
    in_panel_order = [task.id for task in tasks]

    assert [ask.question.id for ask in grep.asks] == along_history * 2
    assert [ask.question.id for ask in stateful.asks] == in_panel_order * 2
    assert along_history != in_panel_order
