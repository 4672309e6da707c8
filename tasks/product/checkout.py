"""A product on disk: fetched alone at one commit, or as its dirty work tree is."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.clone import FULL_NAME, is_url
from coldrun.tasks.lib.git.git_command import read_git
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Revision

NETWORK_SECONDS = 1800
"""A transfer that takes longer is given up."""

CAREFUL = (
    *("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", "core.checkStat=default", "-c", "core.trustctime=true"),
    *("-c", "core.sparseCheckout=false", "-c", "core.ignoreStat=false"),
)
"""Options under which git looks at every file itself, whatever a repository sets."""

FETCHED_REF = "refs/coldrun/fetched"


def is_remote(repo: str) -> bool:
    """Whether a product is reached over the network; a `file://` URL is a path."""
    return is_url(repo) and not repo.startswith("file://")


def resolve_remote(url: str, revision: str) -> str:
    """The commit that a branch, tag or full object name means in the repository at `url`."""
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
    """Make a repository at `target` that holds one commit of a URL or absolute path alone.

    No remote is recorded, so no later commit can be reached from inside.
    """
    target.mkdir(parents=True, exist_ok=True)
    read_git(
        ["init", "--quiet", *_format_of(commit), "--initial-branch=coldrun", "."], directory=target
    )
    _fetch_commit(source, commit, target)
    read_git(["checkout", "--quiet", "--detach", commit], directory=target)
    _forget_source(target)
    return verify_head(target, commit)


def _fetch_commit(source: str, commit: str, target: Path) -> None:
    fetch = [
        *("-c", "protocol.version=2", "-c", "gc.auto=0"),
        *("fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head"),
    ]
    if not is_remote(source):
        path = source.removeprefix("file://")
        # Whoever owns the files: only objects are read.
        serve = "git -c uploadpack.allowAnySHA1InWant=true -c 'safe.directory=*' upload-pack"
        try:
            read_git(
                [*fetch, f"--upload-pack={serve}", f"file://{path}", f"+{commit}:{FETCHED_REF}"],
                directory=target,
            )
        except RepositoryError as error:
            if "lazy fetching disabled" in str(error):
                raise RepositoryError(
                    f"{path} is a partial clone and lacks files of {commit[:12]}; name a full clone"
                ) from None
            raise
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
    return read_git(arguments, directory=folder, as_user=True, timeout_seconds=NETWORK_SECONDS)


def _forget_source(target: Path) -> None:
    read_git(["update-ref", "-d", FETCHED_REF], directory=target)
    for name in ("FETCH_HEAD", "ORIG_HEAD"):
        (target / ".git" / name).unlink(missing_ok=True)
    shutil.rmtree(target / ".git" / "logs", ignore_errors=True)


def _format_of(commit: str) -> tuple[str, ...]:
    return ("--object-format=sha256",) if len(commit) == 64 else ()


def verify_head(checkout: Path, commit: str) -> Revision:
    """`HEAD` of a checkout and its tree. Raises RepositoryError when it is another commit."""
    head = Repository.open(checkout).resolve("HEAD")
    if head.commit != commit:
        raise RepositoryError(f"{checkout} is at {head.commit}, not at {commit} as it should be")
    return head


def list_changed(checkout: Path, tree: str) -> tuple[str, ...]:
    """Tracked files that are not what `tree` says, staged or not, or that are marked so that git
    does not look at them, sorted. Writes nothing."""
    status = (*CAREFUL, "status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames")
    staged = ("diff-index", "--cached", "--name-only", "-z", "--no-renames", tree, "--")
    unstaged = (record[3:] for record in _records(checkout, *status) if record[1:2] != b" ")
    flags = (record.partition(b" ") for record in _records(checkout, "ls-files", "-v", "-z"))
    marked = (path for flag, _, path in flags if flag == b"S" or flag.islower())
    return tuple(sorted(map(os.fsdecode, {*unstaged, *marked, *_records(checkout, *staged)})))


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
    return [each for each in read_git(arguments, directory=folder).split(b"\0") if each]


def find_entries(repository: Path, commit: str, paths: Sequence[str]) -> dict[str, str | None]:
    """What a commit has at these paths, as "mode object"; None where it has nothing."""
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

    Every file is read: a fresh index knows of no marks and no times. The user's index and object
    store stay as they are; new objects go to the bare repository `objects`, which is made here and
    borrows the user's. What a sparse checkout leaves out is as in `HEAD`.

    Raises:
        RepositoryError: A repository lies within, whose files belong to no commit of this one.
    """
    common = Path(_one_line(["rev-parse", "--path-format=absolute", "--git-common-dir"], repo))
    top = Path(_one_line(["rev-parse", "--show-toplevel"], repo))
    head = _one_line(["rev-parse", "HEAD"], repo)
    read_git(["init", "--quiet", *_format_of(head), "--bare", str(objects)], directory=top)
    (objects / "objects" / "info" / "alternates").write_text(f"{common / 'objects'}\n")
    index = objects / "worktree.index"
    environment = {
        "GIT_INDEX_FILE": str(index),
        "GIT_OBJECT_DIRECTORY": str(objects / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(common / "objects"),
    }
    options: dict[str, Any] = {"directory": top, "as_user": True, "environment": environment}
    read_git([*CAREFUL, "read-tree", head], **options)
    read_git([*CAREFUL, "add", "--all", "."], **options)
    _restore_left_out(top, head, options)
    tree = read_git(["write-tree"], **options).decode("ascii").strip()
    _refuse_nested(top, head, options)
    return tree


def _restore_left_out(top: Path, head: str, options: Mapping[str, Any]) -> None:
    """Take from `HEAD` what a sparse checkout does not lay out."""
    records = read_git(["ls-files", "-t", "-z"], directory=top, as_user=True).split(b"\0")
    names = [record[2:] for record in records if record.startswith(b"S ")]
    names = [name for name in names if not os.path.lexists(top / os.fsdecode(name))]
    if names:
        whole = read_git(["ls-tree", "-r", "-z", "--full-tree", head], directory=top, as_user=True)
        left_out = set(names)
        kept = [each for each in whole.split(b"\0") if each.partition(b"\t")[2] in left_out]
        update = ["update-index", "-z", "--index-info"]
        read_git(update, stdin=[each + b"\0" for each in kept], **options)


def _refuse_nested(top: Path, head: str, options: Mapping[str, Any]) -> None:
    """Refuse a work tree with repositories in it that `HEAD` does not have as it has them here."""
    changes = ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--abbrev=64", head, "--"]
    fields = read_git([*CAREFUL, *changes], **options).split(b"\0")
    found = [
        path for meta, path in zip(fields[::2], fields[1::2], strict=False) if b" 160000 " in meta
    ]
    status = [*CAREFUL, "status", "--porcelain=v2", "-z", "--ignore-submodules=none"]
    for record in read_git([*status, "--untracked-files=no"], **options).split(b"\0"):
        words = record.split(b" ", 8)
        if len(words) == 9 and words[2].startswith(b"S") and words[2] != b"SC..":
            found.append(words[8])
    if found:
        names = ", ".join(sorted({os.fsdecode(name).rstrip("/") for name in found}))
        raise RepositoryError(
            f"the work tree {top} has repositories of their own in it ({names}), whose files "
            "belong to no commit of the product; commit there and here, or ignore them"
        )


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
