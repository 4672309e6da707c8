"""Which commits `--commits` means, and what is refused in one clear line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coldrun.tasks.history.commits import list_new, read_list, select_commits
from coldrun.tasks.history.history_plan import HistoryCommit
from coldrun.tasks.lib.errors import RepositoryError, UsageError
from coldrun.tasks.lib.git.repository import Repository
from tests.conftest import RepositoryBuilder

New = Callable[..., RepositoryBuilder]


@pytest.fixture
def line(new_repository: New) -> tuple[Repository, list[str]]:
    """Five commits in a row, tagged v1.0, v1.1 … v1.4."""
    builder = new_repository()
    commits = [builder.commit(f"commit {n}", {"a.txt": str(n)}) for n in range(5)]
    for number, commit in enumerate(commits):
        builder.git("tag", f"v1.{number}", commit)
    return Repository.open(builder.path), commits


def _names(found: tuple[HistoryCommit, ...]) -> list[str]:
    return [commit.commit for commit in found]


def test_range_has_both_ends_oldest_first(line: tuple[Repository, list[str]]) -> None:
    """The first commit is what the others are compared with, so it belongs to the range."""
    repository, commits = line
    found = select_commits(repository, "v1.1..v1.3")
    assert _names(found) == commits[1:4]
    assert [commit.subject for commit in found] == ["commit 1", "commit 2", "commit 3"]
    assert found[1].paths == ("a.txt",)


def test_tags_by_pattern_and_list_go_by_date(line: tuple[Repository, list[str]]) -> None:
    """The order of writing does not matter, and repeats are dropped."""
    repository, commits = line
    assert _names(select_commits(repository, "v1.[024]")) == [commits[0], commits[2], commits[4]]
    found = select_commits(repository, f"v1.3, v1.0,{commits[3]}")
    assert _names(found) == [commits[0], commits[3]]
    assert [commit.distance for commit in found] == [1, 3]


def test_list_longer_than_a_path_can_be(line: tuple[Repository, list[str]]) -> None:
    """A dozen full commit names are more than a file's name may have."""
    repository, commits = line
    assert _names(select_commits(repository, read_list(",".join(commits * 8)))) == commits


def test_file_of_commits_is_read_by_line(
    line: tuple[Repository, list[str]], tmp_path: Path
) -> None:
    """Comments and blank lines are skipped; a commit that does not exist is named."""
    repository, commits = line
    path = tmp_path / "commits.txt"
    path.write_text(f"# good\n{commits[2]}  # the middle\n\nv1.0\n")
    assert _names(select_commits(repository, read_list(str(path)))) == [commits[0], commits[2]]
    path.write_text(f"v1.0\n{'0' * 39}1\n")
    with pytest.raises(RepositoryError, match=r"0001 is no commit of"):
        select_commits(repository, read_list(str(path)))
    path.write_text("# nothing\n")
    with pytest.raises(UsageError, match="names no commit"):
        read_list(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v1.2..v1.2", "is empty"),
        ("v1.3..v1.1", "is reversed.*say v1.1..v1.3"),
        ("v1.0..gone", "unknown revision 'gone'"),
        ("v9*", "no tag"),
        ("v1.0,nothing", "nothing is no commit"),
    ],
)
def test_impossible_selection_is_one_clear_line(
    line: tuple[Repository, list[str]], text: str, message: str
) -> None:
    """Every mistake says what was found and what to do."""
    with pytest.raises(UsageError, match=message) as caught:
        select_commits(line[0], text)
    assert "\n" not in str(caught.value)


def test_range_across_branches_and_unrelated_histories_is_refused(new_repository: New) -> None:
    """A fork names where it parts; histories that share nothing say so."""
    builder = new_repository()
    base = builder.commit("base", {"a": "1"})
    builder.branch("side", base)
    builder.commit("main", {"a": "2"})
    builder.commit("side", {"b": "1"}, branch="side")
    builder.commit("another root", {"c": "1"}, branch="other", parents=[])
    repository = Repository.open(builder.path)
    with pytest.raises(RepositoryError, match=f"they part at {base}"):
        select_commits(repository, "side..main")
    with pytest.raises(RepositoryError, match="share no history"):
        select_commits(repository, "other..main")


def test_first_parent_leaves_out_what_a_merge_brought(new_repository: New) -> None:
    """The main line has the merge as one commit; all commits have both of its sides."""
    builder = new_repository()
    base = builder.commit("base", {"a": "1"})
    builder.branch("side", base)
    side = builder.commit("side", {"b": "1"}, branch="side")
    main = builder.commit("main", {"a": "2"})
    merge = builder.merge("merge", side, files={"b": "1"})
    repository = Repository.open(builder.path)
    assert _names(select_commits(repository, f"{base}..main")) == [base, main, merge]
    found = select_commits(repository, f"{base}..main", is_first_parent=False)
    assert set(_names(found)) == {base, side, main, merge}


def test_new_commits_are_those_after_the_newest_measured(
    line: tuple[Repository, list[str]],
) -> None:
    """By commit or by tree; nothing measured means the tip alone, a measured tip means nothing."""
    repository, commits = line
    tree = repository.resolve("v1.3").tree
    assert _names(list_new(repository, commits[4], {commits[0], commits[2]})) == commits[3:]
    assert _names(list_new(repository, commits[4], {tree})) == commits[4:]
    assert _names(list_new(repository, commits[4], set())) == commits[4:]
    assert list_new(repository, commits[4], {commits[4]}) == ()
