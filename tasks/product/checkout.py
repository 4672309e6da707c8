"""A product on disk: fetched alone at one commit, or as its dirty work tree is."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.clone import FULL_NAME, is_url
from coldrun.tasks.lib.git.git_command import read_git
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Revision

NETWORK_SECONDS = 1800
"""A transfer that takes longer is given up."""

FETCHED_REF = "refs/coldrun/fetched"


def is_remote(repo: str) -> bool:
    """Whether a product is reached over the network; a `file://` URL is a path."""
    return is_url(repo) and not repo.startswith("file://")


def resolve_remote(url: str, revision: str) -> str:
    """The commit that a branch, tag or full object name means in the repository at `url`.

    Raises:
        RepositoryError: The repository cannot be reached, or has no such branch or tag.
    """
    if FULL_NAME.fullmatch(revision):
        return revision
    output = _transfer(["ls-remote", url], Path(tempfile.gettempdir()))
    refs: dict[str, str] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        commit, _, name = line.partition("\t")
        refs[name] = commit
    for name in (
        revision,
        f"refs/tags/{revision}^{{}}",
        f"refs/tags/{revision}",
        f"refs/heads/{revision}",
    ):
        if name in refs:
            return refs[name]
    raise RepositoryError(
        f"{url} has no branch or tag {revision!r}; name one of its branches or tags, or a full "
        "commit, or give the path of a local clone"
    )


def fetch_alone(source: str, commit: str, target: Path) -> Revision:
    """Make a repository at `target` that holds one commit of `source` and nothing else.

    `source` is a URL or an absolute path. The work tree is checked out without the user's git
    configuration, `HEAD` is detached at the commit, and no remote is recorded, so no later commit
    can be reached from inside.

    Returns:
        What `HEAD` and its tree turned out to be.

    Raises:
        RepositoryError: The commit cannot be fetched, or `HEAD` is not the commit asked for.
    """
    target.mkdir(parents=True, exist_ok=True)
    read_git(["init", "--quiet", "--initial-branch=coldrun", "."], directory=target)
    _fetch_commit(source, commit, target)
    read_git(["checkout", "--quiet", "--detach", commit], directory=target)
    _forget_source(target)
    return verify_head(target, commit)


def _fetch_commit(source: str, commit: str, target: Path) -> None:
    """Fetch one commit at depth 1, through the whole repository where a server refuses that."""
    fetch = [
        *("-c", "protocol.version=2", "-c", "gc.auto=0"),
        *("fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head"),
    ]
    if not is_remote(source):
        path = source.removeprefix("file://")
        # Whoever owns the files: only objects are read.
        serve = "git -c uploadpack.allowAnySHA1InWant=true -c 'safe.directory=*' upload-pack"
        read_git(
            [*fetch, f"--upload-pack={serve}", f"file://{path}", f"+{commit}:{FETCHED_REF}"],
            directory=target,
        )
        return
    try:
        _transfer([*fetch, source, f"+{commit}:{FETCHED_REF}"], target)
    except RepositoryError as refused:
        # Servers before protocol 2 hand out tips of branches and tags only.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="clone-") as folder:
            try:
                _transfer(["clone", "--quiet", "--bare", source, "whole.git"], Path(folder))
                _fetch_commit(str(Path(folder) / "whole.git"), commit, target)
            except RepositoryError:
                raise refused from None


def _transfer(arguments: Sequence[str], folder: Path) -> bytes:
    """Run git over the network, as the user has set it up."""
    return read_git(arguments, directory=folder, as_user=True, timeout_seconds=NETWORK_SECONDS)


def _forget_source(target: Path) -> None:
    read_git(["update-ref", "-d", FETCHED_REF], directory=target)
    for name in ("FETCH_HEAD", "ORIG_HEAD"):
        (target / ".git" / name).unlink(missing_ok=True)
    shutil.rmtree(target / ".git" / "logs", ignore_errors=True)


def verify_head(checkout: Path, commit: str) -> Revision:
    """`HEAD` of a checkout and its tree. Raises RepositoryError when it is another commit."""
    head = Repository.open(checkout).resolve("HEAD")
    if head.commit != commit:
        raise RepositoryError(f"{checkout} is at {head.commit}, not at {commit} as it should be")
    return head


def list_changed(checkout: Path, tree: str) -> tuple[str, ...]:
    """Tracked files that are not what `tree` says, staged or not, sorted. Writes nothing."""
    status = ("status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames")
    staged = ("diff-index", "--cached", "--name-only", "-z", "--no-renames", tree, "--")
    unstaged = (record[3:] for record in _records(checkout, *status) if record[1:2] != b" ")
    return tuple(sorted(map(os.fsdecode, {*unstaged, *_records(checkout, *staged)})))


def list_untracked(checkout: Path) -> tuple[str, ...]:
    """Files of a checkout that git does not track, ignored ones included, sorted."""
    return tuple(sorted(map(os.fsdecode, _records(checkout, "ls-files", "--others", "-z"))))


def list_made(checkout: Path) -> tuple[str, ...]:
    """What git does not track in a checkout, a folder without tracked files as one name with a
    slash at its end; empty folders included, sorted."""
    records = _records(checkout, "ls-files", "--others", "--directory", "-z")
    return tuple(sorted(map(os.fsdecode, records)))


def list_tracked(checkout: Path) -> dict[str, str]:
    """The files of a checkout that git tracks, with their modes ("160000": a submodule)."""
    records = (each.partition(b"\t") for each in _records(checkout, "ls-files", "--stage", "-z"))
    return {os.fsdecode(path): meta[:6].decode("ascii") for meta, _, path in records}


def _records(folder: Path, *arguments: str) -> list[bytes]:
    """The output of a git command with `-z`, taken apart."""
    return [each for each in read_git(arguments, directory=folder).split(b"\0") if each]


def find_entries(repository: Path, commit: str, paths: Sequence[str]) -> dict[str, str | None]:
    """What a commit has at these paths, as "mode object"; None where it has nothing.

    Raises:
        RepositoryError: The commit is not in the repository.
    """
    found: dict[str, str | None] = dict.fromkeys(paths)
    if not found:
        return found
    options = ("-c", "safe.directory=*", "ls-tree", "-t", "-z", "--full-tree")
    for record in _records(repository, *options, commit, "--", *found):
        meta, _, path = record.partition(b"\t")
        name = os.fsdecode(path)
        if name in found:
            mode, _, object_id = meta.decode("ascii").split(" ")
            found[name] = f"{mode} {object_id}"
    return found


def write_worktree_tree(repo: Path, objects: Path) -> str:
    """The tree of a dirty work tree: what `git add --all` would stage, untracked files included.

    The user's index and object store stay as they are: a copy of the index is used, and new
    objects go to the bare repository `objects`, which is made here and borrows the user's.
    """
    git_dir = Path(_one_line(["rev-parse", "--absolute-git-dir"], repo))
    common = Path(_one_line(["rev-parse", "--path-format=absolute", "--git-common-dir"], repo))
    top = Path(_one_line(["rev-parse", "--show-toplevel"], repo))
    read_git(["init", "--quiet", "--bare", str(objects)], directory=top)
    (objects / "objects" / "info" / "alternates").write_text(f"{common / 'objects'}\n")
    index = objects / "worktree.index"
    if (git_dir / "index").exists():
        shutil.copy2(git_dir / "index", index)
    environment = {
        "GIT_INDEX_FILE": str(index),
        "GIT_OBJECT_DIRECTORY": str(objects / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(common / "objects"),
    }
    options: dict[str, Any] = {"directory": top, "as_user": True, "environment": environment}
    read_git(["add", "--all", "."], **options)
    return read_git(["write-tree"], **options).decode("ascii").strip()


def lay_dirty_tree(checkout: Path, objects: Path, tree: str) -> None:
    """Turn a checkout's files and index into `tree`, leaving `HEAD` where it is."""
    author = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (
            ("NAME", "coldrun"),
            ("EMAIL", "coldrun@localhost"),
            ("DATE", "2000-01-01T00:00:00Z"),
        )
    }
    commit = read_git(
        ["commit-tree", tree, "-m", "dirty work tree"], directory=objects, environment=author
    )
    name = commit.decode("ascii").strip()
    read_git(["update-ref", "refs/heads/dirty", name], directory=objects)
    _fetch_commit(str(objects), name, checkout)
    read_git(["read-tree", "--reset", "-u", tree], directory=checkout)
    _forget_source(checkout)


def _one_line(arguments: Sequence[str], cwd: Path) -> str:
    return os.fsdecode(read_git(arguments, directory=cwd, as_user=True)).strip("\n")
