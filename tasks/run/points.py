"""The product at a commit: fetched alone, verified, set up once, kept, and looked at afterwards.

points/<digest>/checkout     the product's files, with a repository that holds one commit
points/<digest>/setup.log    what the set-up printed
points/<digest>/point.json   the completion stamp, written last; without it nothing here counts
points/<digest>.lock         held while the point is prepared
points/<digest>.use          held, shared, by every session that runs the point
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.arms.artifacts import digest_setup
from tasks.arms.base import Point
from tasks.canonical import canonical_json
from tasks.config import ProductConfig
from tasks.errors import ConfigError, PointError, RepositoryError, StorageError
from tasks.git.checkout import (
    fetch_alone,
    is_remote,
    lay_dirty_tree,
    list_untracked,
    resolve_remote,
    write_worktree_tree,
)
from tasks.git.repository import Repository
from tasks.records import Revision
from tasks.run.locks import hold_lock, try_lock
from tasks.run.point_use import (
    inspect_checkout,
    list_touched,
    read_stamp,
    record_built,
    sweep_when_free,
)
from tasks.run.process import describe_exit, kill_group
from tasks.run.scratch import refuse_enclosing_repository, remove_folder
from tasks.run.search_path import session_search_path

WORKTREE = "worktree"
"""The revision that means the work tree as it is, uncommitted changes included."""

USER_FOLDERS = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
"""What a set-up, unlike a session, sees of the user's: package caches, toolchains, credentials."""

OUTPUT_TAIL_BYTES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a point comes from. `tree` is None for a remote one until it is fetched."""

    repo: str
    commit: str
    tree: str | None
    is_dirty: bool = False


def prepare_point(
    product: ProductConfig, *, config_dir: Path, scratch: Path, revision: str | None = None
) -> Point:
    """Check out, verify and set up the product at a revision, or find it as an earlier run left it.

    Args:
        product: `[product]` of the configuration.
        config_dir: The folder that relative paths start at.
        scratch: The scratch folder, outside any repository.
        revision: A revision, or "worktree"; left out, the configuration's `commit`.

    Raises:
        RepositoryError: The repository or the revision does not exist.
        PointError: The commit could not be fetched or verified, or its set-up failed; the message
            has the end of the output and names the file that holds all of it.
        UsageError: The scratch folder lies inside a git repository.
        StorageError: The scratch folder cannot be written.
    """
    refuse_enclosing_repository(scratch)
    points = scratch.resolve() / "points"
    wanted = revision or product.commit
    try:
        points.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=points, prefix="worktree-") as folder:
            objects = Path(folder) / "objects.git"
            source = _find_source(product, wanted, config_dir, objects)
            identity = {
                "repo": source.repo,
                "commit": source.commit,
                "tree": source.tree if source.is_dirty else None,
                "setup": digest_setup(product, config_dir=config_dir),
            }
            place = points / hashlib.sha256(canonical_json(identity)).hexdigest()[:40]
            with hold_lock(place.with_suffix(".lock")):
                return _prepare(product, source, place, objects, identity)
    except OSError as error:
        raise StorageError(
            f"cannot prepare the product below {points}: {error.strerror or error}; free some "
            "space, or choose another scratch folder with --scratch"
        ) from error


def _find_source(product: ProductConfig, revision: str, config_dir: Path, objects: Path) -> _Source:
    if is_remote(product.repo):
        if revision == WORKTREE:
            raise ConfigError(
                f'[product] commit = "worktree" needs a work tree on this machine, but repo is the '
                f"URL {product.repo}; name the path of a clone"
            )
        return _Source(repo=product.repo, commit=resolve_remote(product.repo, revision), tree=None)
    path = Path(os.path.normpath(config_dir.absolute() / product.repo.removeprefix("file://")))
    repository = Repository.open(path)
    if revision != WORKTREE:
        found = repository.resolve(revision)
        return _Source(repo=str(path), commit=found.commit, tree=found.tree)
    head = repository.resolve("HEAD")
    tree = write_worktree_tree(path, objects)
    return _Source(repo=str(path), commit=head.commit, tree=tree, is_dirty=tree != head.tree)


def _prepare(
    product: ProductConfig,
    source: _Source,
    place: Path,
    objects: Path,
    identity: Mapping[str, Any],
) -> Point:
    """The point at `place`; the caller holds its lock."""
    checkout = place / "checkout"
    place.with_suffix(".use").touch()
    stamp = read_stamp(place)
    if stamp is not None and stamp.get("identity") == identity:
        problems = inspect_checkout(checkout, source.commit, str(stamp["tree"]))
        if not problems and not list_touched(place):
            sweep_when_free(place)
            return _point(source, checkout, str(stamp["tree"]))
    _refuse_in_use(place)
    remove_folder(place)
    place.mkdir()
    found = _check_out(source, checkout, objects)
    _set_up(product, checkout, place / "setup.log", found.commit)
    problems = inspect_checkout(checkout, found.commit, found.tree)
    if problems:
        raise PointError(
            f"the set-up of {source.repo} at {found.commit} {'; '.join(problems)}; a set-up must "
            f"leave tracked files alone (its output: {place / 'setup.log'})"
        )
    _write_stamp(place, identity, found, record_built(checkout, list_untracked(checkout)))
    return _point(source, checkout, found.tree)


def _point(source: _Source, checkout: Path, tree: str) -> Point:
    return Point(
        repo=source.repo,
        directory=checkout,
        commit=source.commit,
        tree=tree,
        is_dirty=source.is_dirty,
    )


def _check_out(source: _Source, checkout: Path, objects: Path) -> Revision:
    try:
        found = fetch_alone(source.repo, source.commit, checkout)
        if source.is_dirty and source.tree is not None:
            lay_dirty_tree(checkout, objects, source.tree)
            found = Revision(commit=found.commit, tree=source.tree)
    except RepositoryError as error:
        raise PointError(f"cannot check out {source.repo} at {source.commit}: {error}") from None
    if source.tree is not None and found.tree != source.tree:
        raise PointError(
            f"{source.repo} at {source.commit} has the tree {source.tree}, but the checkout has "
            f"{found.tree}; check the repository with `git fsck`"
        )
    return found


def _set_up(product: ProductConfig, checkout: Path, log: Path, commit: str) -> None:
    if not product.setup:
        return
    environment = {
        "PATH": session_search_path(),
        "LANG": "C.UTF-8",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CEILING_DIRECTORIES": str(checkout.parent),
    }
    for name in (*USER_FOLDERS, *product.setup_env):
        if name in os.environ:
            environment[name] = os.environ[name]
    failure = _run_set_up(product, checkout, log, environment)
    if failure is not None:
        raise PointError(
            f"the set-up `{' '.join(product.setup)}` of {product.repo} at {commit} failed: "
            f"{failure}; its output ({log}) ends:\n{_tail(log)}"
        )


def _run_set_up(
    product: ProductConfig, checkout: Path, log: Path, environment: Mapping[str, str]
) -> str | None:
    """Run the set-up in its own process group; says how it failed, or None."""
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                list(product.setup),
                cwd=checkout,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return f"it cannot be started: {error.strerror or error}"
        try:
            code = process.wait(timeout=product.setup_timeout_seconds)
        except subprocess.TimeoutExpired:
            return f"not finished after {product.setup_timeout_seconds:g} s"
        finally:
            kill_group(process.pid)
            process.wait()
    return describe_exit(code) if code else None


def _tail(log: Path) -> str:
    text = log.read_bytes()[-OUTPUT_TAIL_BYTES:].decode("utf-8", "replace").strip()
    return text or "(nothing)"


def _write_stamp(
    place: Path, identity: Mapping[str, Any], found: Revision, untracked: Mapping[str, Any]
) -> None:
    unfinished = place / "point.json.part"
    unfinished.write_bytes(
        canonical_json(
            {
                "identity": dict(identity),
                "commit": found.commit,
                "tree": found.tree,
                "untracked": dict(untracked),
            }
        )
    )
    unfinished.rename(place / "point.json")


def _refuse_in_use(place: Path) -> None:
    lock = try_lock(place.with_suffix(".use"))
    if lock is None:
        raise PointError(
            f"the checkout {place / 'checkout'} was changed while another run uses it; wait for "
            "that run to end and start again"
        )
    lock.release()


def prune_points(scratch: Path, *, unused_for_seconds: float = 0.0) -> tuple[str, ...]:
    """Remove checkouts that no session uses and that were not asked for within a time.

    Returns:
        The removed folders, sorted, relative to `scratch`.
    """
    points = scratch.resolve() / "points"
    removed = []
    now = time.time()
    for place in sorted(points.glob("*/")):
        if place.name.startswith("worktree-"):
            if now - place.stat().st_mtime > 3600:
                shutil.rmtree(place, ignore_errors=True)
            continue
        use = place.with_suffix(".use")
        if use.exists() and now - use.stat().st_mtime < unused_for_seconds:
            continue
        with hold_lock(place.with_suffix(".lock")):
            lock = try_lock(use)
            if lock is None:
                continue
            remove_folder(place)
            use.unlink(missing_ok=True)
            lock.release()
        removed.append(f"points/{place.name}")
    return tuple(removed)
