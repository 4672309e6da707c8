"""A product on disk: fetched alone at one commit, or as its dirty work tree is."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Revision

PLAIN_GIT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
"""Git without anybody's configuration: the same files for everybody."""

NETWORK_GIT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
"""Git as the user has set it up: proxies, credentials and rewritten URLs work."""

USER_VARIABLES = (*("GIT_ASKPASS", "GIT_CONFIG", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH", "GIT_SSL_"),)
"""How the user reaches a remote; the caller's other GIT_ variables (say, a hook's) are hidden."""

NETWORK_SECONDS = 1800
"""After so long a transfer is given up."""

FULL_NAME_LENGTHS = (40, 64)
FETCHED_REF = "refs/coldrun/fetched"


def run_git(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float | None = None,
) -> bytes:
    """The output of one git command.

    Raises:
        RepositoryError: git failed; the message holds what it said.
    """
    from git import Git
    from git.exc import CommandError

    hidden = [name for name in sorted(os.environ) if name.startswith("GIT_")]
    kept = PLAIN_GIT if env is None else env
    if kept.get("GIT_CONFIG_NOSYSTEM") is None:
        hidden = [name for name in hidden if not name.startswith(USER_VARIABLES)]
    unset = [word for name in hidden if name not in kept for word in ("-u", name)]
    try:
        output = Git(cwd).execute(
            [*(("env", *unset) if unset else ()), "git", *arguments],
            env=dict(kept),
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            kill_after_timeout=timeout_seconds,
        )
    except CommandError as error:
        said = str(error.stderr).strip().removeprefix("stderr: ").strip("'\n ")
        words = (word for word in arguments if not word.startswith("-") and "=" not in word)
        name = next(words, "command")
        raise RepositoryError(f"git {name} failed in {cwd}: {said}") from None
    if not isinstance(output, bytes):
        raise TypeError("git gave text where bytes were asked for")
    return output


def is_remote(repo: str) -> bool:
    """Whether `repo` names a repository by URL (`scheme://` or `user@host:path`), not by path."""
    if repo.startswith("file://"):
        return False
    if "://" in repo:
        return True
    host, colon, _ = repo.partition(":")
    return bool(colon) and "/" not in host and not Path(repo).exists()


def is_full_name(revision: str) -> bool:
    """Whether `revision` is a full object name in hexadecimal."""
    return len(revision) in FULL_NAME_LENGTHS and all(
        character in "0123456789abcdef" for character in revision
    )


def resolve_remote(url: str, revision: str) -> str:
    """The commit that a branch, tag or full object name means in the repository at `url`.

    Raises:
        RepositoryError: The repository cannot be reached, or has no such branch or tag.
    """
    if is_full_name(revision):
        return revision
    output = run_git(
        ["ls-remote", url],
        cwd=Path(tempfile.gettempdir()),
        env=NETWORK_GIT,
        timeout_seconds=NETWORK_SECONDS,
    )
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

    `source` is a URL or an absolute path. The work tree is checked out without anybody's git
    configuration, `HEAD` is detached at the commit, and no remote is recorded, so no later commit
    can be reached from inside.

    Returns:
        What `HEAD` and its tree turned out to be.

    Raises:
        RepositoryError: The commit cannot be fetched, or `HEAD` is not the commit asked for.
    """
    target.mkdir(parents=True, exist_ok=True)
    run_git(["init", "--quiet", "--initial-branch=coldrun", "."], cwd=target)
    _fetch_commit(source, commit, target)
    run_git(["checkout", "--quiet", "--detach", commit], cwd=target)
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
        run_git(
            [*fetch, f"--upload-pack={serve}", f"file://{path}", f"+{commit}:{FETCHED_REF}"],
            cwd=target,
        )
        return
    try:
        run_git(
            [*fetch, source, f"+{commit}:{FETCHED_REF}"],
            cwd=target,
            env=NETWORK_GIT,
            timeout_seconds=NETWORK_SECONDS,
        )
    except RepositoryError as refused:
        # Servers before protocol 2 hand out tips of branches and tags only.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="clone-") as folder:
            try:
                run_git(
                    ["clone", "--quiet", "--bare", source, "whole.git"],
                    cwd=Path(folder),
                    env=NETWORK_GIT,
                    timeout_seconds=NETWORK_SECONDS,
                )
                _fetch_commit(str(Path(folder) / "whole.git"), commit, target)
            except RepositoryError:
                raise refused from None


def _forget_source(target: Path) -> None:
    run_git(["update-ref", "-d", FETCHED_REF], cwd=target)
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
    status = run_git(
        ["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"], cwd=checkout
    )
    unstaged = (record[3:] for record in status.split(b"\0") if record and record[1:2] != b" ")
    staged = run_git(
        ["diff-index", "--cached", "--name-only", "-z", "--no-renames", tree, "--"], cwd=checkout
    )
    names = {*unstaged, *(name for name in staged.split(b"\0") if name)}
    return tuple(sorted(os.fsdecode(name) for name in names))


def list_untracked(checkout: Path) -> tuple[str, ...]:
    """Files of a checkout that git does not track, ignored ones included, sorted."""
    output = run_git(["ls-files", "--others", "-z"], cwd=checkout)
    return tuple(sorted(os.fsdecode(path) for path in output.split(b"\0") if path))


def list_tracked(checkout: Path) -> dict[str, str]:
    """The files of a checkout that git tracks, with their modes ("160000": a submodule)."""
    output = run_git(["ls-files", "--stage", "-z"], cwd=checkout)
    records = (record.partition(b"\t") for record in output.split(b"\0") if record)
    return {os.fsdecode(path): meta[:6].decode("ascii") for meta, _, path in records}


def list_made(checkout: Path) -> tuple[str, ...]:
    """What git does not track in a checkout, a folder without tracked files as one name with a
    slash at its end; empty folders included, sorted."""
    output = run_git(["ls-files", "--others", "--directory", "-z"], cwd=checkout)
    return tuple(sorted(os.fsdecode(path) for path in output.split(b"\0") if path))


def find_entries(repository: Path, commit: str, paths: Sequence[str]) -> dict[str, str | None]:
    """What a commit has at these paths, as "mode object"; None where it has nothing.

    Raises:
        RepositoryError: The commit is not in the repository.
    """
    found: dict[str, str | None] = dict.fromkeys(paths)
    if not found:
        return found
    output = run_git(
        [
            *("-c", "safe.directory=*", "ls-tree", "-t", "-z", "--full-tree"),
            *(commit, "--", *found),
        ],
        cwd=repository,
    )
    for record in output.split(b"\0"):
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
    run_git(["init", "--quiet", "--bare", str(objects)], cwd=top)
    (objects / "objects" / "info" / "alternates").write_text(f"{common / 'objects'}\n")
    index = objects / "worktree.index"
    if (git_dir / "index").exists():
        shutil.copy2(git_dir / "index", index)
    env = {
        **NETWORK_GIT,
        "GIT_INDEX_FILE": str(index),
        "GIT_OBJECT_DIRECTORY": str(objects / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(common / "objects"),
    }
    run_git(["add", "--all", "."], cwd=top, env=env)
    return run_git(["write-tree"], cwd=top, env=env).decode("ascii").strip()


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
    commit = run_git(
        ["commit-tree", tree, "-m", "dirty work tree"], cwd=objects, env={**PLAIN_GIT, **author}
    )
    name = commit.decode("ascii").strip()
    run_git(["update-ref", "refs/heads/dirty", name], cwd=objects)
    _fetch_commit(str(objects), name, checkout)
    run_git(["read-tree", "--reset", "-u", tree], cwd=checkout)
    _forget_source(checkout)


def _one_line(arguments: Sequence[str], cwd: Path) -> str:
    return os.fsdecode(run_git(arguments, cwd=cwd, env=NETWORK_GIT)).strip("\n")
