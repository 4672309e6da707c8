"""A base for someone who has none in mind."""

from __future__ import annotations

import pytest

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.mine.pick_base import pick_base


@pytest.fixture
def pick():
    """Pick a base in the repository of a builder."""

    def run(made, wanted, head="HEAD", **panel):
        spec = PanelConfig(kind="commit-files", repo=str(made.path), base="-", drop=(), **panel)
        return pick_base(Repository.open(made.path), head, spec, wanted=wanted).commit

    return run


def test_pick_base_is_the_newest_that_leaves_enough(new_repository, pick, mine):
    """Mining from the picked base gives what was wanted; one commit later gives less."""
    made = new_repository()
    names = [made.commit("start", {"a": "0"})]
    names += [made.commit(f"edit {number}", {"a": str(number)}) for number in range(1, 30)]
    base = pick(made, 10)
    assert base == names[-11]
    assert len(mine(made, base=base).tasks) == 10


def test_pick_base_counts_merged_branches_and_drops(new_repository, pick, mine):
    """Commits of side branches count, merges and new files do not."""
    made = new_repository()
    start = made.commit("start", {"a": "0", "b": "0"})
    for number in range(12):
        made.commit(f"new {number}", {f"n{number}": "1"})
        made.commit(f"side {number}", {"b": str(number)}, branch="side", parents=[start])
        side = made.git("rev-parse", "side")
        made.merge(f"merge {number}", side, files={"b": str(number)})
    base = pick(made, 5)
    assert len(mine(made, base=base).tasks) >= 5
    chain = made.git("rev-list", "--first-parent", "HEAD").split()
    newer = chain[chain.index(base) - 1]
    assert len(mine(made, base=newer).tasks) < 5


def test_pick_base_short_history_takes_the_best(new_repository, pick, mine):
    """With fewer commits than wanted, the base with the most tasks is taken."""
    made = new_repository()
    made.commit("start", {"a": "0"})
    best = made.commit("more files", {f"f{number}": "0" for number in range(5)})
    for number in range(5):
        made.commit(f"edit {number}", {f"f{number}": "1"})
    assert pick(made, 100) == best
    assert len(mine(made, base=best).tasks) == 5


def test_pick_base_merge_unit_counts_pull_requests(new_repository, pick, mine):
    """The unit is the panel's."""
    made = new_repository()
    made.commit("start", {"a": "0"})
    for number in range(6):
        tip = made.git("rev-parse", "main")
        side = made.commit(f"wip {number}", {"a": str(number)}, branch=f"s{number}", parents=[tip])
        title = f"Merge pull request #{number} from x/y\n\nTitle {number}"
        made.merge(title, side, files={"a": f"{number}"})
    base = pick(made, 3, unit="merge")
    assert len(mine(made, base=base, unit="merge").tasks) == 3


def test_pick_base_nothing_solvable_is_a_clear_error(new_repository, pick):
    """One commit, or only new files, leave nothing to ask."""
    made = new_repository()
    made.commit("start", {"a": "0"})
    with pytest.raises(RepositoryError, match="solvable task"):
        pick(made, 10)
    made.commit("another", {"b": "0"})
    with pytest.raises(RepositoryError, match="solvable task"):
        pick(made, 10)
