"""Repositories by URL: cloned once into the scratch folder, fetched only when needed."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from coldrun.tasks.lib.concealment import keep_url_secret, without_credentials
from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.git_command import read_git, run_git
from coldrun.tasks.lib.git.repository import Repository

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(?:[^/:@]+@)?[^/:]{2,}:(?!//)[^\\]")
FULL_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


def is_url(source: str) -> bool:
    """Whether `source` is a URL or an scp-like address (host:path) instead of a path."""
    return _URL.match(source) is not None


def must_clone(source: str, scratch: Path) -> bool:
    """Whether opening `source` will clone it first, which can take minutes."""
    if not is_url(source):
        return False
    return not (scratch.resolve() / "clones" / _folder_name(source) / "HEAD").is_file()


def open_source(
    source: str,
    *,
    relative_to: Path,
    scratch: Path,
    wanted: Sequence[str] = (),
    is_fresh: bool = False,
) -> Repository:
    """Open a path or a cloned URL; with `is_fresh`, names that move mean what they mean now."""
    if is_url(source):
        moves = is_fresh and not all(FULL_NAME.fullmatch(name) for name in wanted)
        repository = Repository.open(ensure_clone(source, scratch, wanted=wanted, update=moves))
    else:
        repository = Repository.open(relative_to / Path(source).expanduser())
    repository.refuse_incomplete()
    return repository


def ensure_clone(
    url: str, scratch: Path, *, wanted: Sequence[str] = (), update: bool = False
) -> Path:
    """A bare clone of `url` below `scratch`, fetched when a `wanted` revision is not there."""
    keep_url_secret(url)
    if not is_url(url):
        url = str(Path(url).expanduser().resolve())
    clones = scratch.resolve() / "clones"
    target = clones / _folder_name(url)
    if not (target / "HEAD").is_file():
        _clone(url, clones, target)
    elif update or _missing(target, wanted):
        _fetch(url, target, wanted)
    return target


def _clone(url: str, clones: Path, target: Path) -> None:
    try:
        clones.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".clone-", dir=clones))
    except OSError as error:
        raise RepositoryError(f"cannot write below {clones}: {error.strerror}") from None
    try:
        status, _, complaint = run_git(
            [
                *("-c", "gc.auto=0", "-c", "safe.directory=*", "clone", "--bare", "--quiet"),
                *("--origin", "origin", "--template=", "--", url, str(temporary / "bare")),
            ],
            directory=clones,
            as_user=True,
        )
        if status != 0:
            raise RepositoryError(_network_error("clone", url, complaint))
        origin = ["config", "remote.origin.url", without_credentials(url)]
        read_git(origin, directory=temporary / "bare")
        try:
            (temporary / "bare").rename(target)
        except OSError as error:
            if not (target / "HEAD").is_file():  # Else another process was first.
                raise RepositoryError(f"cannot write {target}: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _fetch(url: str, target: Path, wanted: Sequence[str]) -> None:
    # Nothing is pruned or collected: a frozen panel may stand on a branch that has moved since.
    options = ["-c", "gc.auto=0", "-c", "safe.directory=*", f"--git-dir={target}", "fetch"]
    options += ["--quiet", "--no-prune", "--no-auto-maintenance", "--", url]
    status, _, complaint = run_git([*options, *_REFSPECS], directory=target, as_user=True)
    if status != 0:
        raise RepositoryError(_network_error("fetch", url, complaint))
    for commit in _missing(target, wanted):
        if FULL_NAME.fullmatch(commit):  # A commit on no branch; not every server gives it.
            run_git([*options, commit], directory=target, as_user=True)


def _missing(target: Path, wanted: Sequence[str]) -> list[str]:
    repository = Repository.open(target)
    return [revision for revision in wanted if not repository.has_commit(revision)]


def _folder_name(url: str) -> str:
    url = without_credentials(url)
    digest = hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    last = re.split(r"[/\\:]", url.rstrip("/").removesuffix(".git"))[-1]
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip(".-")[:40] or "repository"
    return f"{slug}-{digest}.git"


def _network_error(action: str, url: str, complaint: str) -> str:
    shown = without_credentials(url)
    reason = complaint.replace(url, shown) or "git gave no reason"
    return f"cannot {action} {shown}: {reason}; check the address and that you may read it"
