"""Points: fetched alone, verified, set up once, kept."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

from coldrun.tasks.lib.errors import ConfigError, PointError, RepositoryError, UsageError
from coldrun.tasks.lib.records import Point
from coldrun.tasks.product.point_use import list_additions, use_point
from coldrun.tasks.product.points import prune_points
from tests.sessions import Lab, serve_repositories

COUNTING = ("sh", "-c", 'echo run >> "$COUNT_FILE"; mkdir -p .venv; echo ok > .venv/ready')


@pytest.fixture
def counted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the caches of set-ups, to which each appends a line."""
    lab.commit_files("product", {"tool.py": "1", ".gitignore": ".venv/\n"}, "first")
    lab.commit_files("product", {"tool.py": "2"}, "second")
    path = lab.scratch / "caches" / "count"
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.setenv("COUNT_FILE", str(path))
    return path


def prepare(lab: Lab, revision: str | None = None) -> Point:
    return lab.point(revision, setup=COUNTING, setup_env=("COUNT_FILE",))


def test_point_holds_its_commit_alone(lab: Lab, counted: Path) -> None:
    """An old commit is checked out with one commit in its history and no remote."""
    first = lab.git("product", "rev-parse", "HEAD~1")
    point = prepare(lab, "HEAD~1")
    assert (point.commit, point.is_dirty) == (first, False)
    assert point.tree == lab.git("product", "rev-parse", "HEAD~1^{tree}")
    assert (point.directory / "tool.py").read_text() == "1"
    checkout = str(point.directory.relative_to(lab.root))
    assert lab.git(checkout, "rev-list", "--all", "HEAD").split() == [first]
    assert lab.git(checkout, "remote") == ""
    assert lab.git(checkout, "for-each-ref") == ""
    assert lab.git(checkout, "status", "--porcelain") == ""
    assert str(lab.root / "product") not in (point.directory / ".git" / "config").read_text()


def test_point_is_set_up_once_and_found_again(lab: Lab, counted: Path) -> None:
    """The second run finds the point as it is; another commit is another point."""
    one = prepare(lab)
    assert prepare(lab) == one
    assert counted.read_text().count("run") == 1
    assert prepare(lab, "HEAD~1").directory != one.directory
    assert counted.read_text().count("run") == 2
    assert (one.directory.parent / "setup.log").exists()
    stamp = json.loads((one.directory.parent / "point.json").read_text())
    assert (stamp["commit"], stamp["tree"]) == (one.commit, one.tree)
    assert stamp["identity"]["repo"] == str(lab.root / "product")
    assert prepare(lab, "worktree") == one  # without a change it is its commit


def test_half_finished_set_up_is_done_again(lab: Lab, counted: Path) -> None:
    """Without its stamp a point does not count, whatever lies there."""
    point = prepare(lab)
    (point.directory.parent / "point.json").unlink()
    (point.directory / ".venv" / "ready").write_text("half")
    assert prepare(lab) == point
    assert (point.directory / ".venv" / "ready").read_text() == "ok\n"
    assert counted.read_text().count("run") == 2


def test_set_up_that_fails_tells_its_end_and_is_tried_again(lab: Lab, counted: Path) -> None:
    """A commit whose set-up fails is an error with the tail of the output, never a point."""
    failing = ("sh", "-c", "echo started; echo 'no such package' >&2; exit 3")
    with pytest.raises(PointError, match="exit code 3") as caught:
        lab.point(setup=failing)
    text = str(caught.value)
    assert "started\nno such package" in text
    log = Path(text.partition("its output (")[2].partition(")")[0])
    assert "no such package" in log.read_text()
    with pytest.raises(PointError):
        lab.point(setup=failing)
    with pytest.raises(PointError, match="cannot be started"):
        lab.point(setup=("no-such-program",))


def test_set_up_that_hangs_is_ended_with_its_children(lab: Lab, counted: Path) -> None:
    """A set-up has its own limit, and nothing of it runs on."""
    with pytest.raises(PointError, match=r"not finished after 0\.5 s") as caught:
        lab.point(setup=("sh", "-c", "sleep 61.25 & echo $!; wait"), setup_timeout_seconds=0.5)
    assert "not finished" in str(caught.value)
    deadline = time.monotonic() + 5
    while any(
        each.info["cmdline"] == ["sleep", "61.25"] for each in psutil.process_iter(["cmdline"])
    ):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_point_changed_since_is_made_anew(lab: Lab, counted: Path) -> None:
    """A checkout that somebody edited, or moved to another commit, is not reused."""
    point = prepare(lab)
    (point.directory / "tool.py").write_text("edited")
    assert prepare(lab) == point
    assert (point.directory / "tool.py").read_text() == "2"
    assert counted.read_text().count("run") == 2


def test_leftovers_of_sessions_are_swept_at_reuse(lab: Lab, counted: Path) -> None:
    """Files that sessions left are removed; what the set-up made stays."""
    point = prepare(lab)
    (point.directory / "answers.db").write_text("old")
    (point.directory / ".venv" / "cache").mkdir()
    (point.directory / ".venv" / "cache" / "x").write_text("old")
    assert list_additions(point) == (".venv/cache/x", "answers.db")
    lock = use_point(point)
    assert lock is not None
    assert list_additions(point) == ()
    (point.directory / "answers.db").write_text("of the session that runs")
    prepare(lab)
    assert list_additions(point) == ("answers.db",)
    lock.release()
    prepare(lab)
    assert list_additions(point) == ()
    assert (point.directory / ".venv" / "ready").exists()


def test_dirty_work_tree_is_measured_as_it_is(lab: Lab, counted: Path) -> None:
    """Edits and new files count, ignored ones do not, and the user's repository stays untouched."""
    product = lab.root / "product"
    (product / "tool.py").write_text("edited")
    (product / "new.py").write_text("new")
    (product / ".venv").mkdir()
    (product / ".venv" / "local").write_text("ignored")
    status = lab.git("product", "status", "--porcelain")
    objects = sorted((product / ".git" / "objects").rglob("*"))
    index = (product / ".git" / "index").read_bytes()
    point = prepare(lab, "worktree")
    assert point.is_dirty
    assert point.commit == lab.git("product", "rev-parse", "HEAD")
    assert point.tree != lab.git("product", "rev-parse", "HEAD^{tree}")
    assert (point.directory / "tool.py").read_text() == "edited"
    assert (point.directory / "new.py").read_text() == "new"
    assert not (point.directory / ".venv" / "local").exists()
    checkout = str(point.directory.relative_to(lab.root))
    assert lab.git(checkout, "write-tree") == point.tree
    assert lab.git(checkout, "rev-parse", "HEAD") == point.commit
    assert lab.git("product", "status", "--porcelain") == status
    assert sorted((product / ".git" / "objects").rglob("*")) == objects
    assert (product / ".git" / "index").read_bytes() == index
    assert prepare(lab, "worktree") == point
    (product / "new.py").write_text("newer")
    other = prepare(lab, "worktree")
    assert other.tree != point.tree
    assert other.directory != point.directory
    assert [path.name for path in point.directory.parent.parent.glob("worktree-*")] == []


HIDING = {
    "nothing hidden": "echo 3 > tool.py",
    "assume-unchanged": "git update-index --assume-unchanged tool.py; echo 3 > tool.py",
    "skip-worktree": "git update-index --skip-worktree tool.py; echo 3 > tool.py",
    "split index": "git config core.splitIndex true; git update-index --split-index; "
    "git update-index --assume-unchanged tool.py; echo 3 > tool.py",
    "fsmonitor": "printf '#!/bin/sh\\nprintf \"tok\\\\0\"\\n' > .git/monitor; "
    "chmod +x .git/monitor; "
    "git config core.fsmonitor .git/monitor; git config core.fsmonitorHookVersion 2; "
    "git update-index --fsmonitor; git status; sleep 0.01; echo 3 > tool.py",
    "same size and time": "touch -d 2020-01-01 tool.py; git update-index --refresh; "
    "git config core.checkStat minimal; git config core.trustctime false; printf 3 > tool.py; "
    'touch -d 2020-01-01 tool.py; test -z "$(git status --porcelain)"',
}
"""Edits of tool.py in a work tree or by a set-up; of most, git itself does not tell."""


@pytest.mark.parametrize("edit", HIDING.values(), ids=list(HIDING))
def test_edit_that_git_does_not_see_is_measured_or_refused(
    lab: Lab, counted: Path, edit: str
) -> None:
    """Marks in an index hide no change: of the user's work tree, nor one that a set-up makes.

    Such a set-up would measure something else than the commit.
    """
    with pytest.raises(PointError, match=r"changed tracked files of the product: tool\.py"):
        lab.point(setup=("sh", "-c", edit))
    product = lab.root / "product"
    subprocess.run(["sh", "-c", edit], cwd=product, check=True, stdout=subprocess.DEVNULL)
    files = sorted((product / ".git").rglob("*"))
    point = prepare(lab, "worktree")
    assert point.is_dirty
    assert (point.directory / "tool.py").read_text().strip() == "3"
    assert sorted((product / ".git").rglob("*")) == files


def test_set_up_that_points_git_elsewhere_is_refused(lab: Lab, counted: Path) -> None:
    """The checkout is compared without the settings that a set-up made in it."""
    for trick in (
        'cp -r . "$TMPDIR/copy"; git config core.worktree "$TMPDIR/copy"',
        "echo '*.py filter=h' > .git/info/attributes; git config filter.h.clean 'echo 2'",
        "git sparse-checkout set --no-cone /.gitignore",
    ):
        with pytest.raises(
            PointError, match=r"changed tracked files of the product: tool\.py|broke the repository"
        ):
            lab.point(setup=("sh", "-c", f"{trick}; echo 3 > tool.py"))


def test_sparse_work_tree_has_the_commits_files_outside(lab: Lab, counted: Path) -> None:
    """Files outside of the cone come from `HEAD` unless they are there; those inside can go."""
    lab.commit_files("product", {"in/a": "1", "in/b": "1", "out/a": "1", "out/b": "1"})
    lab.git("product", "sparse-checkout", "set", "in")
    product = lab.root / "product"
    (product / "in" / "a").unlink()
    (product / "out").mkdir()
    (product / "out" / "a").write_text("edited")
    (product / "out" / "new").write_text("new")
    found = prepare(lab, "worktree").directory
    texts = {name: (found / name).read_text() for name in ("in/b", "out/a", "out/b", "out/new")}
    assert texts == {"in/b": "1", "out/a": "edited", "out/b": "1", "out/new": "new"}
    assert not (found / "in" / "a").exists()


def test_file_that_is_ignored_but_staged_is_measured(lab: Lab, counted: Path) -> None:
    """What was added by force counts with the content that it has now."""
    (lab.root / "product" / ".venv").mkdir()
    (lab.root / "product" / ".venv" / "kept").write_text("staged")
    lab.git("product", "add", "--force", ".venv/kept")
    (lab.root / "product" / ".venv" / "kept").write_text("now")
    assert (prepare(lab, "worktree").directory / ".venv" / "kept").read_text() == "now"


def test_nested_repositories_hide_nothing(lab: Lab, counted: Path) -> None:
    """One that is not recorded is refused, and so is a submodule with changes; both are named."""
    lab.commit_files("product/vendor", {"v.py": "1"})
    with pytest.raises(RepositoryError, match=r"product/vendor is a repository inside of"):
        prepare(lab, "worktree")
    lab.commit_files("product", {}, "with a submodule")
    assert not prepare(lab, "worktree").is_dirty
    lab.git("product/vendor", "update-index", "--assume-unchanged", "v.py")
    (lab.root / "product" / "vendor" / "v.py").write_text("2")
    with pytest.raises(RepositoryError, match=r"product/vendor has changes that are not committed"):
        prepare(lab, "worktree")


def test_sha256_product_is_measured(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects may have longer names, at a commit and in a dirty work tree."""
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    commit = lab.commit_files("product", {"tool.py": "1"})
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha1")
    point = lab.point()
    assert (len(commit), point.commit) == (64, commit)
    (lab.root / "product" / "tool.py").write_text("2")
    assert (lab.point("worktree").directory / "tool.py").read_text() == "2"


def test_partial_clone_is_measured_where_its_objects_are_there(lab: Lab, counted: Path) -> None:
    """What is missing is not fetched from elsewhere: one line says what to do."""
    lab.git("product", "config", "uploadpack.allowFilter", "true")
    lab.git(".", "clone", "-q", "--filter=blob:none", f"file://{lab.root}/product", "partial")
    repo = str(lab.root / "partial")
    assert (lab.point(repo=repo).directory / "tool.py").read_text() == "2"
    with pytest.raises(PointError, match=r"partial clone lacks objects of the commit; clone it"):
        lab.point("HEAD~1", repo=repo)
    lab.git(".", "clone", "-qn", "--filter=tree:0", f"file://{lab.root}/product", "treeless")
    with pytest.raises(RepositoryError, match=r"a partial clone, clone it again"):
        lab.point(repo=str(lab.root / "treeless"))


def test_linked_worktree_is_a_source(lab: Lab, counted: Path) -> None:
    """The product may be a linked worktree, clean or dirty."""
    lab.git("product", "worktree", "add", "--quiet", "--detach", "../linked", "HEAD~1")
    (lab.root / "linked" / "tool.py").write_text("linked edit")
    point = lab.point("worktree", repo="../linked")
    assert (point.directory / "tool.py").read_text() == "linked edit"
    assert point.commit == lab.git("product", "rev-parse", "HEAD~1")


def test_unreachable_commit_can_be_a_point(lab: Lab, counted: Path) -> None:
    """A commit that no branch holds any more is fetched by its name."""
    lost = lab.commit_files("product", {"tool.py": "lost"})
    lab.git("product", "reset", "--quiet", "--hard", "HEAD~1")
    assert (prepare(lab, lost).directory / "tool.py").read_text() == "lost"


def test_users_git_configuration_does_not_change_the_files(
    lab: Lab, counted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line ends, hooks and attributes of whoever runs coldrun have no say."""
    config = tmp_path / "gitconfig"
    config.write_text("[core]\n\tautocrlf = true\n\thooksPath = /nowhere\n[init]\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    lab.commit_files("product", {"crlf.txt": "a\nb\n"})
    assert (prepare(lab).directory / "crlf.txt").read_bytes() == b"a\nb\n"


def test_what_cannot_be_a_point_is_named(lab: Lab, counted: Path) -> None:
    """A wrong name, or a scratch folder that git would look out of, says what to do."""
    with pytest.raises(RepositoryError, match="'nope'"):
        prepare(lab, "nope")
    with pytest.raises(RepositoryError, match="there is nothing at"):
        lab.point(repo="../missing")
    with pytest.raises(ConfigError, match="needs a work tree"):
        lab.point("worktree", repo="https://example.invalid/x.git")
    (lab.scratch / ".git").mkdir()
    with pytest.raises(UsageError, match="lies inside the git repository"):
        prepare(lab)


def test_two_runs_at_once_share_one_set_up(lab: Lab, counted: Path) -> None:
    """Runs side by side wait for each other."""
    slow = ("sh", "-c", 'sleep 0.3; echo run >> "$COUNT_FILE"')
    found: list[Point] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(lab.point(setup=slow, setup_env=("COUNT_FILE",)))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    assert counted.read_text().count("run") == 1


def test_set_up_sees_no_undeclared_variable(
    lab: Lab, counted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set-up has the user's folders and the search path, and what is declared."""
    monkeypatch.setenv("MY_SECRET", "x")
    point = lab.point(setup=("sh", "-c", "env > .venv-env; mkdir .venv; mv .venv-env .venv/env"))
    names = {line.partition("=")[0] for line in (point.directory / ".venv/env").read_text().split()}
    assert "MY_SECRET" not in names
    assert {"PATH", "LANG"} <= names


def test_points_are_pruned_unless_in_use_or_recent(lab: Lab, counted: Path) -> None:
    """Pruning keeps what a session uses, and what was asked for lately."""
    one, two = prepare(lab), prepare(lab, "HEAD~1")
    assert prune_points(lab.scratch, unused_for_seconds=3600) == ()
    old = time.time() - 7200
    os.utime(one.directory.parent.with_suffix(".use"), (old, old))
    lock = use_point(two)
    assert prune_points(lab.scratch, unused_for_seconds=3600) == (
        f"points/{one.directory.parent.name}",
    )
    assert prune_points(lab.scratch) == ()
    assert lock is not None
    lock.release()
    assert prune_points(lab.scratch) == (f"points/{two.directory.parent.name}",)
    assert prune_points(lab.scratch) == ()


def test_point_is_fetched_over_a_protocol(lab: Lab, counted: Path) -> None:
    """A URL is asked for its branches and tags, and for a commit by its name."""
    lab.git("product", "tag", "-a", "v1", "-m", "one", "HEAD~1")
    head = lab.git("product", "rev-parse", "HEAD")
    first = lab.git("product", "rev-parse", "HEAD~1")
    with serve_repositories(lab.root) as root:
        url = f"{root}/product/.git"
        assert lab.point("HEAD", repo=url).commit == head
        assert lab.point("main", repo=url).commit == head
        assert lab.point("v1", repo=url).commit == first
        point = lab.point(first, repo=url)
        assert point.tree == lab.git("product", "rev-parse", "HEAD~1^{tree}")
        with pytest.raises(RepositoryError, match="no branch or tag 'HEAD~1'"):
            lab.point("HEAD~1", repo=url)
        with pytest.raises(PointError, match="cannot check out"):
            lab.point("1" * 40, repo=url)
