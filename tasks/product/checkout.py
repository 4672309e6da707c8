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
from coldrun.tasks.lib.git.git_command import read_git, run_git
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Revision

NETWORK_SECONDS = 1800
"""A transfer that takes longer is given up."""

FETCHED_REF = "refs/coldrun/fetched"

LOOK_AT_FILES = tuple(
    word
    for setting in (
        "add.ignoreErrors=false",
        "core.checkStat=default",
        "core.fsmonitor=false",
        "core.ignoreStat=false",
        "core.sparseCheckout=false",
        "core.splitIndex=false",
        "core.trustctime=true",
        "core.untrackedCache=false",
    )
    for word in ("-c", setting)
)
"""Settings under which git looks at every file, whatever a repository's own settings say."""


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
    lines = output.decode("utf-8", "replace").splitlines()
    refs = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    tag = f"refs/tags/{revision}"
    for name in (revision, f"{tag}^{{}}", tag, f"refs/heads/{revision}"):
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
    read_git(["init", "--quiet", "--initial-branch=coldrun", *_like(commit)], directory=target)
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


def keep_index(checkout: Path, tree: str) -> None:
    """Keep the index of a fresh checkout beside it, where set-ups and sessions cannot mark files.

    It is a repository of its own, so that no setting made in the checkout hides a change either.
    """
    kept = _kept_index(checkout)
    read_git(["init", "--quiet", "--bare", "--template=", *_like(tree), str(kept)])
    shutil.copy2(checkout / ".git" / "index", kept / "index")


def _kept_index(checkout: Path) -> Path:
    return checkout.with_name(f"{checkout.name}.git")


def _like(object_id: str) -> tuple[str, ...]:
    """The option that makes a repository whose objects are named like this one."""
    return ("--object-format=sha256",) if len(object_id) == 64 else ("--object-format=sha1",)


def list_changed(checkout: Path, tree: str) -> tuple[str, ...]:
    """Tracked files that are not what `tree` says, staged or not, sorted. Writes nothing."""
    kept = (f"--git-dir={_kept_index(checkout)}", f"--work-tree={checkout}")
    status = ("status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames")
    objects = {"GIT_OBJECT_DIRECTORY": str(checkout / ".git" / "objects")}
    found = read_git([*kept, *LOOK_AT_FILES, *status], directory=checkout, environment=objects)
    unstaged = (record[3:] for record in found.split(b"\0") if record[1:2] not in (b" ", b""))
    staged = ("diff-index", "--cached", "--name-only", "-z", "--no-renames", tree, "--")
    return tuple(sorted(map(os.fsdecode, {*unstaged, *_records(checkout, *staged)})))


def list_untracked(checkout: Path) -> tuple[str, ...]:
    """Files of a checkout that git does not track, ignored ones included, sorted."""
    return tuple(sorted(map(os.fsdecode, _records(checkout, "ls-files", "--others", "-z"))))


def list_tracked(checkout: Path) -> dict[str, str]:
    """The files of a checkout that git tracks, with their modes ("160000": a submodule)."""
    records = (each.partition(b"\t") for each in _records(checkout, "ls-files", "--stage", "-z"))
    return {os.fsdecode(path): meta[:6].decode("ascii") for meta, _, path in records}


def _records(folder: Path, *arguments: str) -> list[bytes]:
    """The output of a git command with `-z`, taken apart."""
    return [each for each in read_git(arguments, directory=folder).split(b"\0") if each]


def write_worktree_tree(repo: Path, objects: Path, head: str) -> str:
    """The tree of a dirty work tree: what `git add --all` would stage, untracked files included.

    The index is a fresh one of the tree `head`: marks in the user's own hide no change. Files
    outside a sparse checkout are those of `head`, unless they are there. The user's index and
    object store stay as they are: new objects go to the bare repository `objects`, which is made
    here and borrows the user's.

    Raises:
        RepositoryError: A nested repository has files that no commit of it has, or is not recorded
            in `head`; or git cannot read the work tree.
    """
    common = Path(_one_line(["rev-parse", "--path-format=absolute", "--git-common-dir"], repo))
    top = Path(_one_line(["rev-parse", "--show-toplevel"], repo))
    read_git(["init", "--quiet", "--bare", *_like(head), str(objects)], directory=top)
    (objects / "objects" / "info" / "alternates").write_text(f"{common / 'objects'}\n")
    environment = {
        "GIT_INDEX_FILE": str(objects / "worktree.index"),
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OBJECT_DIRECTORY": str(objects / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(common / "objects"),
    }

    def git(*arguments: str, names: Sequence[bytes] = ()) -> bytes:
        stdin = [name + b"\0" for name in names]
        options: dict[str, Any] = {"directory": top, "as_user": True, "environment": environment}
        return read_git([*LOOK_AT_FILES, *arguments], stdin=stdin, **options)

    git("read-tree", head)
    absent = _outside_sparse_checkout(top)
    if absent:
        known = set(git("ls-files", "-z").split(b"\0"))
        names = [name for name in absent if name in known]
        git("update-index", "--skip-worktree", "-z", "--stdin", names=names)
    git("add", "--all", ".")
    ignored = read_git(
        ["ls-files", "--cached", "--ignored", "--exclude-standard", "-z"],
        directory=top,
        as_user=True,
    ).split(b"\0")
    there = [name for name in ignored if name and os.path.lexists(top / os.fsdecode(name))]
    git("update-index", "--add", "-z", "--stdin", names=there)
    tree = git("write-tree").decode("ascii").strip()
    _refuse_hidden_files(top, objects, head, tree)
    return tree


def _outside_sparse_checkout(top: Path) -> list[bytes]:
    """Files that a sparse checkout leaves out of the work tree, and that are not there."""
    is_sparse = ["config", "--type=bool", "--get", "core.sparseCheckout"]
    if run_git(is_sparse, directory=top, as_user=True)[1].strip() != b"true":
        return []
    marked = read_git(["ls-files", "-t", "-z"], directory=top, as_user=True).split(b"\0")
    names = [line[2:] for line in marked if line.startswith(b"S ")]
    return [name for name in names if not os.path.lexists(top / os.fsdecode(name))]


def _refuse_hidden_files(top: Path, objects: Path, head: str, tree: str) -> None:
    """Refuse nested repositories that `tree` has as a commit alone, if that is not all they are."""
    nested: dict[str, set[str]] = {head: set(), tree: set()}
    for root, found in nested.items():
        for record in _records(objects, "ls-tree", "-r", "-z", "--full-tree", root):
            if record.startswith(b"160000"):
                found.add(os.fsdecode(record.partition(b"\t")[2]))
    for number, path in enumerate(sorted(nested[tree])):
        if path not in nested[head]:
            raise RepositoryError(
                f"{top / path} is a repository inside of the work tree {top}, whose files git does "
                'not see, so commit = "worktree" cannot measure them; add it as a submodule, '
                "ignore it, or remove its .git folder"
            )
        if os.path.lexists(top / path / ".git"):
            inner = Repository.open(top / path).resolve("HEAD").tree
            if write_worktree_tree(top / path, objects / f"nested-{number}", inner) != inner:
                raise RepositoryError(
                    f"the submodule {top / path} has changes that are not committed, which "
                    'commit = "worktree" cannot measure; commit them in the submodule first'
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
