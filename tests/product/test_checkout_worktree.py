"""`commit = "worktree"` measures every byte that is there, whatever git was told not to look at."""

from __future__ import annotations

import pytest

from coldrun.tasks.lib.errors import PointError, RepositoryError
from tests.sessions import Lab

EDIT = "A = 99\n"

HIDE = {
    "assume-unchanged": ["update-index --assume-unchanged tool.py"],
    "skip-worktree": ["update-index --skip-worktree tool.py"],
    "index flags of a folder": ["update-index --assume-unchanged tool.py big/f.txt"],
    "checkStat minimal": ["config core.checkStat minimal", "config core.trustctime false"],
    "ignoreStat": ["config core.ignoreStat true", "update-index --refresh"],
    "untracked cache": ["config core.untrackedCache true", "update-index --untracked-cache"],
    "sparse": ["sparse-checkout set --no-cone /tool.py"],
}
"""Ways to hide an edit of tool.py from git, as commands before it."""


@pytest.fixture
def product(lab: Lab) -> Lab:
    lab.commit_files("product", {"tool.py": "A = 1\n", "big/f.txt": "x\n"})
    return lab


@pytest.mark.parametrize("how", sorted(HIDE))
def test_edit_that_git_does_not_see_is_measured(product: Lab, how: str) -> None:
    """The point is dirty and has the edit; what a sparse checkout leaves out is as committed."""
    for command in HIDE[how]:
        product.git("product", *command.split())
    (product.root / "product" / "tool.py").write_text(EDIT)
    point = product.point("worktree")
    assert point.is_dirty
    assert (point.directory / "tool.py").read_text() == EDIT
    assert (point.directory / "big/f.txt").read_text() == "x\n"


def test_file_outside_a_sparse_cone_is_measured(product: Lab) -> None:
    """What lies outside the cone all the same is part of the work tree."""
    product.git("product", "sparse-checkout", "set", "--no-cone", "/tool.py")
    new = product.root / "product" / "big" / "new.txt"
    new.parent.mkdir(exist_ok=True)
    new.write_text("new\n")
    point = product.point("worktree")
    assert (point.directory / "big/new.txt").read_text() == "new\n"
    assert (point.directory / "big/f.txt").read_text() == "x\n"


def test_repository_within_is_refused_by_name(product: Lab) -> None:
    """Its files are in no tree of the product."""
    product.commit_files("product/vendor", {"v.py": "V = 1\n"})
    with pytest.raises(RepositoryError, match=r"repositories of their own in it \(vendor\)"):
        product.point("worktree")


def test_set_up_cannot_mark_its_changes_as_unchanged(product: Lab) -> None:
    """A tracked file that a set-up edits and hides is a change all the same."""
    script = "echo 'A = 2' > tool.py; git update-index --assume-unchanged tool.py"
    with pytest.raises(PointError, match=r"changed tracked files of the product: tool\.py"):
        product.point(setup=("sh", "-c", script))


def test_sha256_product_is_measured_and_a_partial_clone_refused(lab: Lab) -> None:
    """A repository of the newer format works; one without its files is named in one line."""
    place = lab.root / "newer"
    place.mkdir()
    lab.git("newer", "init", "--quiet", "--object-format=sha256", "--initial-branch=main")
    lab.git("newer", "config", "user.name", "Ada")
    lab.git("newer", "config", "user.email", "ada@example.org")
    commit = lab.commit_files("newer", {"tool.py": "A = 1\n"})
    (place / "tool.py").write_text(EDIT)
    assert lab.point(commit, repo="../newer").commit == commit
    assert (lab.point("worktree", repo="../newer").directory / "tool.py").read_text() == EDIT

    lab.commit_files("product", {"tool.py": "A = 1\n"})
    lab.git("product", "config", "uploadpack.allowFilter", "true")
    options = ("--quiet", "--no-checkout", "--filter=blob:none")
    lab.git(".", "clone", *options, f"file://{lab.root / 'product'}", "partial")
    with pytest.raises(PointError, match="is a partial clone and lacks files"):
        lab.point(repo="../partial")
