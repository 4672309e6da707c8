"""The product at a commit: fetched alone, verified, set up once, kept, and looked at afterwards.

points/<digest>/checkout     the product's files, with a repository that holds one commit
points/<digest>/checkout.git the index as it was checked out, which no set-up can mark
points/<digest>/setup.log    what the set-up printed
points/<digest>/point.json   the completion stamp, written last; without it nothing here counts
points/<digest>.lock         held while the point is prepared
points/<digest>.hold         held, shared, by every run that measures the point
points/<digest>.use          held, shared, by every session that runs the point

The digest of a point with a set-up of its own is of its commit. Commits that share a set-up share
the place too, because what is installed holds the path of the checkout: their digest is of the
files that `setup_key` names, and the place has the one of them that was asked for last.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from coldrun.tasks.config import ProductConfig
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.errors import ConfigError, PointError, RepositoryError, StorageError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.machine.file_locks import hold_lock
from coldrun.tasks.lib.machine.files import (
    BYTECODE_FOLDER,
    refuse_enclosing_repository,
    remove_folder,
)
from coldrun.tasks.lib.machine.sandbox import SandboxChoice, unsandboxed_reason
from coldrun.tasks.lib.records import Point, Revision
from coldrun.tasks.product.checkout import (
    fetch_alone,
    find_entries,
    is_remote,
    keep_index,
    lay_dirty_tree,
    list_made,
    list_untracked,
    resolve_remote,
    write_worktree_tree,
)
from coldrun.tasks.product.evaluation_files import find_evaluation_files
from coldrun.tasks.product.links import (
    Tie,
    broken_tie,
    find_ties,
    path_name,
    path_text,
    repository_state,
)
from coldrun.tasks.product.point_use import (
    claim_point,
    inspect_checkout,
    list_touched,
    read_stamp,
    record_built,
    release_reserved,
    renew_built,
    reserve_point,
    sweep_all,
    sweep_when_free,
)
from coldrun.tasks.product.set_up import digest_setup, set_up

WORKTREE = "worktree"
"""The revision that means the work tree as it is, uncommitted changes included."""

FOLDER_MODE, LINK_MODES = "040000", ("120000", "160000")
"""How git marks folders, and entries whose object does not say what a program reads there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a point comes from. `tree` is None for a remote one until it is fetched.

    `objects` has what a dirty work tree adds; `fetched` is a checkout that is there already.
    """

    repo: str
    commit: str
    tree: str | None
    objects: Path | None = None
    fetched: Path | None = None

    @property
    def is_dirty(self) -> bool:
        """Whether it is a work tree with changes, and not a commit."""
        return self.objects is not None

    @property
    def repository(self) -> Path:
        """A repository on this machine that has the commit."""
        return self.fetched or Path(self.repo)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    """How points are made."""

    product: ProductConfig
    config_dir: Path
    is_sandboxed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A folder of a point, named by all that decides what may be found in it."""

    path: Path
    identity: Mapping[str, Any]

    @property
    def checkout(self) -> Path:
        return self.path / "checkout"

    @property
    def log(self) -> Path:
        return self.path / "setup.log"

    def lock(self) -> AbstractContextManager[None]:
        """Keep others from preparing anything here."""
        return hold_lock(self.path.with_suffix(".lock"))


def prepare_point(
    product: ProductConfig,
    *,
    config_dir: Path,
    scratch: Path,
    revision: str | None = None,
    choice: SandboxChoice = None,
) -> Point:
    """Check out, verify and set up the product at a revision, or find it as a run left it.

    A point whose set-up is shared belongs to this process until it prepares another.
    """
    refuse_enclosing_repository(scratch)
    release_reserved()
    points = scratch.resolve() / "points"
    wanted = revision or product.commit
    try:
        points.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=points, prefix="worktree-") as folder:
            work = Path(folder)
            source = _find_source(product, wanted, config_dir, work / "objects.git")
            is_sandboxed = unsandboxed_reason(choice) is None
            setup = digest_setup(product, config_dir=config_dir, is_sandboxed=is_sandboxed)
            making = _Making(
                product=product, config_dir=config_dir.resolve(), is_sandboxed=is_sandboxed
            )
            return _prepare(making, source, points, setup, work)
    except OSError as error:
        raise StorageError(
            f"cannot prepare the product below {points}: {error.strerror or error}; free some "
            "space, or choose another scratch folder with --scratch"
        ) from error


def _prepare(making: _Making, source: _Source, points: Path, setup: str, work: Path) -> Point:
    """The point of a source; `work` is a folder beside the places, for checkouts on their way."""
    product = making.product
    own = _place(
        points,
        repo=source.repo,
        commit=source.commit,
        tree=source.tree if source.is_dirty else None,
        setup=setup,
    )
    notes: tuple[str, ...] = ()
    if product.setup and product.setup_key and not source.is_dirty:
        if own.path.exists():
            with own.lock():
                found = _find(product, source, own)
            if found is not None:
                return found
        source = _fetch_remote(source, work / "fetched")
        files = find_entries(
            source.repository, source.commit, [*product.setup_key, *_named_paths(product.setup)]
        )
        notes = _note_missing(source, {name: files[name] for name in product.setup_key})
        if not notes:
            shared = _place(points, repo=source.repo, setup_key=files, setup=setup)
            with shared.lock():
                found, notes = _prepare_shared(making, source, shared, work)
            if found is not None:
                return found
    with own.lock():
        return _find(product, source, own) or _prepare_own(making, source, own, notes)


def _place(points: Path, **identity: Any) -> _Place:
    name = hashlib.sha256(canonical_json(identity)).hexdigest()[:40]
    return _Place(path=points / name, identity=identity)


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


def _fetch_remote(source: _Source, target: Path) -> _Source:
    """A source that can be read: a remote one is fetched for it."""
    if source.tree is not None:
        return source
    found = _check_out(source, target)
    return replace(source, tree=found.tree, fetched=target)


def _named_paths(setup: Sequence[str]) -> list[str]:
    """Words of a set-up's command line that may name a file of the product, such as a script."""
    return [
        str(path) for path in map(PurePosixPath, setup) if path.parts and not path.is_absolute()
    ]


def _note_missing(source: _Source, files: Mapping[str, str | None]) -> tuple[str, ...]:
    """A note about the names in `setup_key` that a commit has nothing at, if there are any."""
    names = [name for name, entry in files.items() if entry is None or entry[:6] in LINK_MODES]
    if not names:
        return ()
    note = (
        f"{source.repo} at {source.commit[:12]} has no {', '.join(names)}, which setup_key names, "
        "so the point was set up for itself (files beside the configuration go into setup_files)"
    )
    return (note,)


def _find(product: ProductConfig, source: _Source, place: _Place) -> Point | None:
    """The point as an earlier run left it at `place`; the caller holds the lock of the place."""
    stamp = read_stamp(place.path)
    if stamp is None or stamp.get("commit") != source.commit or not _is_sound(place, stamp):
        return None
    place.path.with_suffix(".use").touch()
    sweep_when_free(place.path)
    return _point(source, place, stamp, tuple(stamp["notes"]) if product.setup_key else ())


def _is_sound(place: _Place, stamp: Mapping[str, Any]) -> bool:
    """Whether a place is what its name says, its tracked files and its set-up as they were made."""
    if stamp.get("identity") != place.identity:
        return False
    problems = inspect_checkout(place.checkout, stamp["commit"], stamp["tree"])
    return not problems and not list_touched(place.path)


def _prepare_own(making: _Making, source: _Source, place: _Place, notes: tuple[str, ...]) -> Point:
    """Set a point up for itself; the caller holds the lock of its place."""
    with claim_point(place.path) as is_free:
        if not is_free:
            raise PointError(
                f"the checkout {place.checkout} was changed while another run uses it; wait for "
                "that run to end and start again"
            )
        stamp = _make(making, source, place, notes=notes)
    return _point(source, place, stamp, notes)


def _prepare_shared(
    making: _Making, source: _Source, place: _Place, work: Path
) -> tuple[Point | None, tuple[str, ...]]:
    """The point with a set-up that it shares; None, with notes, when it needs one of its own.

    The caller holds the lock of the place. Nobody waits while another run measures another commit
    there: a set-up of its own is as good.
    """
    found = _find(making.product, source, place)
    if found is None:
        with claim_point(place.path) as is_free:
            if not is_free:
                return None, ()
            stamp = read_stamp(place.path)
            if stamp is None or not _is_sound(place, stamp):
                stamp = _make(making, source, place, is_shared=True)
            else:
                why = broken_tie(stamp["ties"], source.repository, source.commit)
                if why is not None:
                    return None, (_refusal(source, stamp, why),)
                if not _has_room(stamp, source):
                    return None, ()
                stamp = _move(source, place, stamp, work) or _make(
                    making, source, place, is_shared=True
                )
            found = _point(source, place, stamp, ())
    reserve_point(place.path)
    return found, ()


def _refusal(source: _Source, stamp: Mapping[str, Any], why: str) -> str:
    return (
        f"the set-up of {source.repo} at {stamp['setup_commit'][:12]} {why}, which is not for "
        f"{source.commit[:12]} to share, so the point was set up for itself; let the set-up "
        "install the product in editable mode and build nothing of it, or leave out setup_key"
    )


def _has_room(stamp: Mapping[str, Any], source: _Source) -> bool:
    """Whether a commit has the folders that the output of a set-up lies in, and not its names."""
    names = [path_name(text).rstrip("/") for text in stamp["made"]]
    folders = {name.rpartition("/")[0] for name in names} - {""}
    entries = find_entries(source.repository, source.commit, [*names, *folders])
    return all(entries[name] is None for name in names) and all(
        (entries[name] or "").startswith(FOLDER_MODE) for name in folders
    )


def _move(
    source: _Source, place: _Place, stamp: Mapping[str, Any], work: Path
) -> dict[str, Any] | None:
    """Until the new stamp is written, the place does not count."""
    found = _check_out(source, work / "next")
    sweep_all(place.path, stamp)
    (place.path / "point.json").unlink()
    try:
        for name in map(path_name, stamp["made"]):
            (place.checkout / name).rename(work / "next" / name)
        place.checkout.rename(work / "last")
        (work / "next").rename(place.checkout)
        keep_index(place.checkout, found.tree)
    except OSError:
        return None
    problems = inspect_checkout(place.checkout, found.commit, found.tree)
    if problems:
        raise PointError(
            f"{source.repo} at {found.commit}: moving its set-up {'; '.join(problems)}"
        )
    with place.log.open("a", encoding="utf-8") as log:
        log.write(f"coldrun: shared with {found.commit}, run at {stamp['setup_commit']}\n")
    place.path.with_suffix(".use").touch()
    return _write_stamp(
        place,
        {
            **stamp,
            "commit": found.commit,
            "tree": found.tree,
            "untracked": renew_built(place.checkout, stamp["untracked"]),
        },
    )


def _make(
    making: _Making,
    source: _Source,
    place: _Place,
    *,
    notes: tuple[str, ...] = (),
    is_shared: bool = False,
) -> dict[str, Any]:
    """Check out and set up at a place from scratch. The place must not be in use.

    Returns:
        The stamp.
    """
    product = making.product
    place.path.with_suffix(".use").touch()
    remove_folder(place.path)
    place.path.mkdir()
    found = _check_out(source, place.checkout)
    before = repository_state(place.checkout)
    hidden: tuple[str, ...] = ()
    if product.setup and making.is_sandboxed:
        fresh = Point(repo="", directory=place.checkout, commit=found.commit, tree=found.tree)
        hidden = find_evaluation_files(fresh, config_dir=making.config_dir)
    set_up(
        product,
        place.checkout,
        place.log,
        found.commit,
        is_sandboxed=making.is_sandboxed,
        hidden=hidden,
    )
    changed_repository = repository_state(place.checkout) != before
    problems = inspect_checkout(place.checkout, found.commit, found.tree)
    if problems:
        raise PointError(
            f"the set-up of {source.repo} at {found.commit} {'; '.join(problems)}; a set-up must "
            f"leave tracked files alone (its output: {place.log})"
        )
    names = list_untracked(place.checkout)
    made = [name for name in list_made(place.checkout) if BYTECODE_FOLDER not in name.split("/")]
    ties: tuple[Tie, ...] = ()
    if is_shared:
        ties = find_ties(
            place.checkout,
            found.commit,
            names=names,
            made=made,
            changed_repository=changed_repository,
        )
    return _write_stamp(
        place,
        {
            "identity": dict(place.identity),
            "commit": found.commit,
            "tree": found.tree,
            "setup_commit": found.commit,
            "made": [path_text(name) for name in made],
            "ties": [asdict(tie) for tie in ties],
            "notes": list(notes),
            "untracked": record_built(place.checkout, names),
        },
    )


def _point(
    source: _Source, place: _Place, stamp: Mapping[str, Any], notes: tuple[str, ...]
) -> Point:
    setup_commit = stamp["setup_commit"]
    return Point(
        repo=source.repo,
        directory=place.checkout,
        commit=source.commit,
        tree=stamp["tree"],
        is_dirty=source.is_dirty,
        setup_commit=None if setup_commit == source.commit else setup_commit,
        notes=notes,
    )


def _check_out(source: _Source, checkout: Path) -> Revision:
    if source.fetched is not None and source.fetched.exists() and source.tree is not None:
        source.fetched.rename(checkout)
        keep_index(checkout, source.tree)
        return Revision(commit=source.commit, tree=source.tree)
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


def _write_stamp(place: _Place, stamp: dict[str, Any]) -> dict[str, Any]:
    unfinished = place.path / "point.json.part"
    unfinished.write_bytes(canonical_json(stamp))
    unfinished.rename(place.path / "point.json")
    return stamp


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
