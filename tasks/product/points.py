"""The product at a commit: fetched alone, verified, set up once, kept, and looked at afterwards.

points/<digest>/checkout     the product's files, with a repository that holds one commit
points/<digest>/checkout.git the index as it was checked out, which no set-up can mark
points/<digest>/setup.log    what the set-up printed
points/<digest>/point.json   the completion stamp, written last; without it nothing here counts
points/<digest>.lock         held while the point is prepared
points/<digest>.hold         held, shared, by every run that measures the point
points/<digest>.use          held, shared, by every session that runs the point

The digest is of the repository, the commit, a dirty work tree's files, and the set-up.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.config import ProductConfig
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.concealment import without_credentials
from coldrun.tasks.lib.errors import ConfigError, PointError, RepositoryError, StorageError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.machine.file_locks import hold_lock
from coldrun.tasks.lib.machine.files import refuse_enclosing_repository, remove_folder
from coldrun.tasks.lib.machine.sandbox import SandboxChoice, unsandboxed_reason
from coldrun.tasks.lib.records import Point, Revision
from coldrun.tasks.product.checkout import (
    fetch_alone,
    is_remote,
    keep_index,
    lay_dirty_tree,
    list_untracked,
    resolve_remote,
    write_worktree_tree,
)
from coldrun.tasks.product.evaluation_files import find_evaluation_files
from coldrun.tasks.product.point_use import (
    claim_point,
    inspect_checkout,
    list_touched,
    read_stamp,
    record_built,
    sweep_when_free,
)
from coldrun.tasks.product.set_up import digest_setup, set_up

WORKTREE = "worktree"
"""The revision that means the work tree as it is, uncommitted changes included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a point comes from. `tree` is None for a remote one until it is fetched.

    `objects` has what a dirty work tree adds.
    """

    repo: str
    commit: str
    tree: str | None
    objects: Path | None = None

    @property
    def is_dirty(self) -> bool:
        """Whether it is a work tree with changes, and not a commit."""
        return self.objects is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A folder of a point, named by its `identity`: all that decides what may be found in it."""

    path: Path
    identity: Mapping[str, Any]
    source: _Source
    product: ProductConfig
    config_dir: Path
    is_sandboxed: bool

    @property
    def checkout(self) -> Path:
        return self.path / "checkout"

    @property
    def log(self) -> Path:
        return self.path / "setup.log"

    def point(self, tree: str) -> Point:
        """The point that lies here."""
        return Point(
            repo=without_credentials(self.source.repo),
            directory=self.checkout,
            commit=self.source.commit,
            tree=tree,
            is_dirty=self.source.is_dirty,
        )


def prepare_point(
    product: ProductConfig,
    *,
    config_dir: Path,
    scratch: Path,
    revision: str | None = None,
    choice: SandboxChoice = None,
) -> Point:
    """Check out, verify and set up the product at a revision, or find it as a run left it."""
    refuse_enclosing_repository(scratch)
    points = scratch.resolve() / "points"
    wanted = revision or product.commit
    try:
        points.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=points, prefix="worktree-") as folder:
            source = _find_source(product, wanted, config_dir, Path(folder) / "objects.git")
            is_sandboxed = unsandboxed_reason(choice) is None
            identity = {
                "repo": without_credentials(source.repo),
                "commit": source.commit,
                "tree": source.tree if source.is_dirty else None,
                "setup": digest_setup(product, config_dir=config_dir, is_sandboxed=is_sandboxed),
            }
            name = hashlib.sha256(canonical_json(identity)).hexdigest()[:40]
            place = _Place(
                path=points / name,
                identity=identity,
                source=source,
                product=product,
                config_dir=config_dir.resolve(),
                is_sandboxed=is_sandboxed,
            )
            with hold_lock(place.path.with_suffix(".lock")):
                return _find(place) or _prepare(place)
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
    tree = write_worktree_tree(path, objects, head.tree)
    return _Source(
        repo=str(path),
        commit=head.commit,
        tree=tree,
        objects=None if tree == head.tree else objects,
    )


def _find(place: _Place) -> Point | None:
    """The point as an earlier run left it: what its name says, tracked files and set-up untouched.

    The caller holds the lock of its place.
    """
    stamp = read_stamp(place.path)
    expected = place.source.commit, place.identity
    if stamp is None or (stamp["commit"], stamp["identity"]) != expected:
        return None
    if inspect_checkout(place.checkout, stamp["commit"], stamp["tree"]) or list_touched(place.path):
        return None
    place.path.with_suffix(".use").touch()
    sweep_when_free(place.path)
    return place.point(stamp["tree"])


def _prepare(place: _Place) -> Point:
    """Check a point out and set it up; the caller holds the lock of its place."""
    with claim_point(place.path) as is_free:
        if not is_free:
            raise PointError(
                f"the checkout {place.checkout} was changed while another run uses it; wait for "
                "that run to end and start again"
            )
        return _make(place)


def _make(place: _Place) -> Point:
    """Check out and set up at a place from scratch. The place must not be in use."""
    source, product = place.source, place.product
    place.path.with_suffix(".use").touch()
    remove_folder(place.path)
    place.path.mkdir()
    found = _check_out(source, place.checkout)
    hidden: tuple[str, ...] = ()
    if product.setup and place.is_sandboxed:
        hidden = find_evaluation_files(place.point(found.tree), config_dir=place.config_dir)
    set_up(
        product,
        place.checkout,
        place.log,
        found.commit,
        is_sandboxed=place.is_sandboxed,
        hidden=hidden,
    )
    problems = inspect_checkout(place.checkout, found.commit, found.tree)
    if problems:
        raise PointError(
            f"the set-up of {source.repo} at {found.commit} {'; '.join(problems)}; a set-up must "
            f"leave tracked files alone (its output: {place.log})"
        )
    stamp = {
        "identity": place.identity,
        "commit": found.commit,
        "tree": found.tree,
        "untracked": record_built(place.checkout, list_untracked(place.checkout)),
    }
    unfinished = place.path / "point.json.part"
    unfinished.write_bytes(canonical_json(stamp))
    unfinished.rename(place.path / "point.json")
    return place.point(found.tree)


def _check_out(source: _Source, checkout: Path) -> Revision:
    try:
        found = fetch_alone(source.repo, source.commit, checkout)
        if source.objects is not None and source.tree is not None:
            lay_dirty_tree(checkout, source.objects, source.tree)
            found = Revision(commit=found.commit, tree=source.tree)
        keep_index(checkout, found.tree)
    except RepositoryError as error:
        why = str(error)
        if not is_remote(source.repo) and Repository.open(Path(source.repo)).is_partial():
            why = "a partial clone lacks objects of the commit; clone it again without --filter"
        raise PointError(f"cannot check out {source.repo} at {source.commit}: {why}") from None
    if source.tree is not None and found.tree != source.tree:
        raise PointError(
            f"{source.repo} at {source.commit} has the tree {source.tree}, but the checkout has "
            f"{found.tree}; check the repository with `git fsck`"
        )
    return found


def prune_points(scratch: Path, *, unused_for_seconds: float = 0.0) -> tuple[str, ...]:
    """Remove checkouts that were not used for a time; gives their names relative to `scratch`."""
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
        with hold_lock(place.with_suffix(".lock")), claim_point(place) as is_free:
            if not is_free:
                continue
            remove_folder(place)
            use.unlink(missing_ok=True)
            place.with_suffix(".hold").unlink(missing_ok=True)
        removed.append(f"points/{place.name}")
    return tuple(removed)
