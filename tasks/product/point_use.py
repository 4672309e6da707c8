"""What sessions do in a point's checkout: entered under a lock, swept before, looked at after."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from coldrun.tasks.lib.canonical import digest_json
from coldrun.tasks.lib.errors import PointError, RepositoryError
from coldrun.tasks.lib.machine.file_locks import FileLock, take_lock, try_lock
from coldrun.tasks.lib.machine.files import BYTECODE_FOLDER, digest_path, remove_folder
from coldrun.tasks.lib.records import Point
from coldrun.tasks.lib.safe_json import load_record
from coldrun.tasks.product.checkout import list_changed, list_untracked, verify_head

NAMED_FILES = 5

HexName = Annotated[str, Field(pattern=r"^([0-9a-f]{2})+$")]


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What a completion stamp holds."""

    identity: dict[str, Any]
    commit: str
    tree: str
    untracked: dict[HexName, Annotated[list[Any], Field(min_length=1)]]


def read_stamp(place: Path) -> dict[str, Any] | None:
    """What the completion stamp of a point says; None when it is missing or incomplete."""
    try:
        return asdict(load_record((place / "point.json").read_bytes(), _Stamp))
    except (FileNotFoundError, ValueError):
        return None


def inspect_checkout(checkout: Path, commit: str, tree: str) -> tuple[str, ...]:
    """What is not as it was checked out: `HEAD`, or tracked files; empty when all is."""
    try:
        verify_head(checkout, commit)
        changed = list_changed(checkout, tree)
    except RepositoryError as error:
        return (f"broke the repository of the checkout: {error}",)
    return (f"changed tracked files of the product: {_name_files(changed)}",) if changed else ()


def list_additions(point: Point) -> tuple[str, ...]:
    """Files in a point's checkout that are there since its set-up, bytecode left out, sorted."""
    stamp = read_stamp(point.directory.parent)
    if stamp is None:
        return ()
    known = _built_files(stamp)
    return tuple(
        path for path in list_untracked(point.directory) if path not in known and _is_kept(path)
    )


def record_built(checkout: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    """For a stamp: what the files that a set-up made are, by their names' bytes in hexadecimal.

    Bytecode is left out: programs write it by themselves, with times in it.
    """
    return {
        os.fsencode(name).hex(): [*_state(checkout / name), _digest(checkout / name)]
        for name in names
    }


def built_digest(place: Path) -> str | None:
    """One digest over the files that the set-up of a point made; None without a stamp."""
    stamp = read_stamp(place)
    if stamp is None:
        return None
    built = stamp["untracked"].items()
    return digest_json({name: known[-1] for name, known in built if _is_kept(_decode(name))})


def list_environments(point: Point) -> tuple[Path, ...]:
    """The virtual environments that the set-up of a point made in its checkout."""
    names = _built_files(read_stamp(point.directory.parent))
    return tuple(
        sorted((point.directory / name).parent for name in names if Path(name).name == "pyvenv.cfg")
    )


def list_touched(place: Path) -> tuple[str, ...]:
    """Files that the set-up of a point made and that are gone or have other content now, sorted.

    Only files that were touched are read.
    """
    checkout = place / "checkout"
    return tuple(
        sorted(
            name
            for name, known in _built_files(read_stamp(place)).items()
            if _is_kept(name)
            and _state(checkout / name) != known[:-1]
            and _digest(checkout / name) != known[-1]
        )
    )


def _built_files(stamp: Mapping[str, Any] | None) -> dict[str, list[Any]]:
    untracked = {} if stamp is None else stamp["untracked"]
    return {_decode(name): known for name, known in untracked.items()}


def _decode(name: str) -> str:
    return os.fsdecode(bytes.fromhex(name))


def _is_kept(name: str) -> bool:
    return BYTECODE_FOLDER not in name.split("/")


def _state(path: Path) -> list[int]:
    try:
        found = path.stat()
    except OSError:
        return []
    return [found.st_ino, found.st_size, found.st_mode, found.st_ctime_ns]


def _digest(path: Path) -> str | None:
    try:
        return digest_path(path) if path.is_file() else str(path.readlink())
    except OSError:
        return None


@contextmanager
def hold_point(point: Point | None) -> Iterator[None]:
    """Keep a point as it is for the length of a run: nothing sets it up again, or removes it."""
    if point is None or read_stamp(point.directory.parent) is None:
        yield
        return
    place = point.directory.parent
    lock = take_lock(place.with_suffix(".hold"), is_shared=True)
    try:
        _refuse_moved(point)
        yield
    finally:
        lock.release()


@contextmanager
def claim_point(place: Path) -> Iterator[bool]:
    """Lock a point for the length of a block, without waiting; False when it is in use."""
    held = try_lock(place.with_suffix(".hold"))
    used = None if held is None else try_lock(place.with_suffix(".use"))
    try:
        yield used is not None
    finally:
        for lock in (held, used):
            if lock is not None:
                lock.release()


def _refuse_moved(point: Point) -> None:
    stamp = read_stamp(point.directory.parent)
    if stamp is None or stamp.get("commit") != point.commit:
        raise PointError(
            f"the checkout {point.directory} is no longer at {point.commit}: another run has taken "
            "it over; start again"
        )


def use_point(point: Point) -> FileLock | None:
    """Lock a point's checkout for a session; None when `prepare_point` did not make it.

    What earlier sessions left there is removed when no other one is in it.
    """
    place = point.directory.parent
    if read_stamp(place) is None:
        return None
    sweep_when_free(place)
    lock = take_lock(place.with_suffix(".use"), is_shared=True)
    try:
        _refuse_moved(point)
    except PointError:
        lock.release()
        raise
    return lock


def describe_use(point: Point) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What sessions did to a point's checkout: (reasons that make the run invalid, warnings)."""
    if read_stamp(point.directory.parent) is None:
        return (), ()
    invalid = tuple(
        f"a session {problem}"
        for problem in inspect_checkout(point.directory, point.commit, point.tree)
    )
    added, touched = list_additions(point), list_touched(point.directory.parent)
    warnings = []
    if added:
        warnings.append(f"wrote {_name_files(added)} into the product's checkout")
    if touched:
        warnings.append(
            f"changed what the product's set-up had made ({_name_files(touched)}): later sessions "
            "saw it; the next run sets the product up again"
        )
    return invalid, tuple(warnings)


def sweep_when_free(place: Path) -> None:
    """Remove what sessions left in a point's checkout, unless a session is in it now."""
    lock = try_lock(place.with_suffix(".use"))
    if lock is None:
        return
    try:
        checkout = place / "checkout"
        for name in list_additions(Point(repo="", directory=checkout, commit="", tree="")):
            found = checkout / name
            if found.is_dir() and not found.is_symlink():
                remove_folder(found)
            else:
                found.unlink(missing_ok=True)
    finally:
        lock.release()


def _name_files(paths: tuple[str, ...]) -> str:
    named = ", ".join(paths[:NAMED_FILES])
    more = len(paths) - NAMED_FILES
    return f"{named} and {more} more" if more > 0 else named
