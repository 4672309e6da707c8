"""The private world of one session: fresh folders, a minimal environment, its own corpus copy.

In the sandbox a session sees nothing else. Without it, honest tools are kept apart from each other
and from later commits, and a program that looks for files elsewhere finds them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coldrun.tasks.arms.artifacts import View, declared_files, view_arm
from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.workspace.corpora import (
    CorpusCopy,
    copy_corpus,
    describe_drift,
    inspect_copy,
)
from coldrun.tasks.config import ProcessArm
from coldrun.tasks.lib.errors import StorageError
from coldrun.tasks.lib.machine.bounded_log import BoundedLog
from coldrun.tasks.lib.machine.child_process import end_strays
from coldrun.tasks.lib.machine.file_locks import take_lock, try_lock
from coldrun.tasks.lib.machine.files import (
    BYTECODE_FOLDER,
    refuse_enclosing_repository,
    remove_folder,
)
from coldrun.tasks.lib.machine.limits import LimitedGroup, make_group
from coldrun.tasks.lib.machine.sandbox import SEARCH_PATH, Mount, wrap_command
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.lib.records import Point, SessionEnd
from coldrun.tasks.product.point_use import describe_use, use_point

PRIVATE_FOLDERS = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "TMP": "tmp",
    "TEMP": "tmp",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_RUNTIME_DIR": "runtime",
}
"""Variables that name a folder of the session's own, fresh for every session."""

LOG_TAIL_BYTES = 64 * 1024
LOG_LIMIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folders of one session, removed by `finish`.

    `cwd` is the corpus where the arm says so, else the product's checkout; without a product it is
    the mirror of the configuration's folder, which holds the declared files alone (the panel, gold
    included, lies beside the configuration). `values` fills the placeholders of command lines and
    tool arguments.
    """

    root: Path
    cwd: Path
    environment: Mapping[str, str]
    corpus: CorpusCopy | None
    values: Mapping[str, str]
    point: Point | None
    cleanup: contextlib.ExitStack
    view: View
    limits: LimitedGroup
    output: BoundedLog
    declared: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[str, ...] = ()
    has_network: bool = False

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line that starts a program of the session, under its limits, in the sandbox
        if it has one.

        Raises:
            FileNotFoundError: The sandbox does not show the program.
        """
        if self.view.is_sandboxed:
            argv = wrap_command(
                [self.find_program(argv[0]), *argv[1:]],
                self.mounts,
                cwd=self.cwd,
                has_network=self.has_network,
                devices=self.devices,
            )
        return self.limits.wrap(argv)

    def find_program(self, name: str) -> str:
        """Where a program of a sandboxed session lies.

        Raises:
            FileNotFoundError: The sandbox does not show it.
        """
        if name in self.view.programs:
            return self.view.programs[name]
        is_path = "/" in name
        found = (self.cwd / name).exists() if is_path else shutil.which(name, path=SEARCH_PATH)
        if not found:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return name

    @property
    def corpus_dir(self) -> str | None:
        """The corpus folder as the session is told it; None when the panel has no corpus."""
        return None if self.corpus is None else str(self.corpus.directory)

    @property
    def log(self) -> Path:
        """What takes the session's standard error: open it to append."""
        return self.output.inlet

    def finish(self, allowed_writes: Sequence[str] = ()) -> SessionEnd:
        """Kill what is left of the session, compare its corpus, and remove its folders.

        Call it once. `allowed_writes` are gitignore patterns of new corpus files that are fine.
        """
        strays = end_strays(self.root / "home")
        invalid: tuple[str, ...] = ()
        warnings: tuple[str, ...] = ()
        if self.corpus is not None:
            invalid, warnings = describe_drift(
                inspect_copy(self.corpus), allowed_writes=allowed_writes
            )
        if self.point is not None and not self.view.is_sandboxed:
            changed, added = describe_use(self.point)
            invalid, warnings = (*invalid, *changed), (*warnings, *added)
        if strays:
            left = counted(strays, "process", "processes")
            warnings += (f"left {left} outside its process group, now ended",)
        unset = sorted({name for name in self.declared if name not in os.environ})
        if unset:
            warnings += (f"{', '.join(unset)}: declared in `env`, and not set",)
        log = self.output.read(limit=LOG_TAIL_BYTES)
        self.cleanup.close()
        return SessionEnd(invalid=invalid, warnings=warnings, log=log)


def open_workspace(
    context: SessionContext, arm: ProcessArm, *, root: Path | None = None
) -> Workspace:
    """Make the private folders of one session, at `root` or at a new place.

    Raises:
        UsageError: The scratch folder lies inside a git work tree or repository.
        ConfigError: A declared file is missing.
        StorageError: The scratch folder cannot be written.
        RepositoryError: The corpus cannot be read.
    """
    refuse_enclosing_repository(context.scratch)
    if root is None:
        root = context.scratch.resolve() / "sessions" / context.run_id / secrets.token_hex(6)
    with contextlib.ExitStack() as cleanup:
        try:
            return _fill_workspace(context, arm, root, cleanup)
        except OSError as error:
            raise StorageError(
                f"cannot prepare the session folder {root}: {error.strerror or error}; free some "
                "space, or choose another scratch folder with --scratch"
            ) from error


def _fill_workspace(
    context: SessionContext, arm: ProcessArm, root: Path, cleanup: contextlib.ExitStack
) -> Workspace:
    """Make the folders at `root`; `cleanup` is the workspace's once all of them are there."""
    lock = root.with_suffix(".lock")
    cleanup.callback(take_lock(lock).release)
    cleanup.callback(lock.unlink, missing_ok=True)
    if context.point is not None and (used := use_point(context.point)) is not None:
        cleanup.callback(used.release)
    root.mkdir(mode=0o700)
    cleanup.callback(remove_folder, root)
    for folder in dict.fromkeys(PRIVATE_FOLDERS.values()):
        (root / folder).mkdir(mode=0o700)
    mirror = _inject_files(context, arm, root / "files")
    corpus = None
    if context.corpus.trees and not arm.has_corpus:
        (root / "corpus").mkdir()
        corpus = CorpusCopy(directory=root / "corpus", originals={}, states={})
    elif context.corpus.trees:
        corpus = copy_corpus(context.corpus, scratch=context.scratch, target=root / "corpus")
    cwd = mirror if context.point is None else context.point.directory.resolve()
    if arm.cwd is not None and corpus is not None:
        cwd = corpus.directory
    view = context.view or view_arm(
        arm,
        config_dir=context.config_dir,
        point=context.point,
        choice=None,
        scratch=context.scratch,
    )
    if view.is_sandboxed:
        _place_programs(view, root / "bin")
    limits = make_group(context.limits)
    cleanup.callback(limits.remove)
    output = BoundedLog(root, limit_bytes=LOG_LIMIT_BYTES)
    cleanup.callback(output.close)
    return Workspace(
        root=root,
        cwd=cwd,
        environment=session_environment(arm, root, view),
        corpus=corpus,
        view=view,
        limits=limits,
        declared=arm.env,
        mounts=_session_mounts(context, view, root) if view.is_sandboxed else (),
        devices=arm.devices,
        has_network=arm.network,
        values={
            "corpus": "" if corpus is None else str(corpus.directory),
            "adapter": "" if arm.adapter is None else os.path.normpath(mirror / arm.adapter),
            "files": str(mirror),
            "python": view.python,
            "k": str(context.k),
            "seed": str(context.seed),
        },
        point=context.point,
        cleanup=cleanup.pop_all(),
        output=output,
    )


def _place_programs(view: View, folder: Path) -> None:
    """A folder for the PATH in which the declared programs have their names."""
    folder.mkdir()
    for name, place in view.programs.items():
        if "/" not in name:
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(place)} "$@"\n')
            script.chmod(0o755)


def _session_mounts(context: SessionContext, view: View, root: Path) -> tuple[Mount, ...]:
    """All that a session sees: its own folders, the product, and what was declared."""
    own = [root / folder for folder in ("files", "corpus", *PRIVATE_FOLDERS.values())]
    mounts = [Mount(path=str(path), kind="write") for path in dict.fromkeys(own) if path.exists()]
    mounts += [Mount(path=str(root / "bin")), *view.mounts]
    point = context.point
    if point is None:
        return tuple(mounts)
    checkout = point.directory.resolve()
    if context.is_knocked_out:
        return (*mounts, Mount(path=str(checkout), kind="empty"))
    mounts.append(Mount(path=str(checkout), kind="scratch"))
    if view.hidden:
        mounts += hide_files(checkout, point.commit, view.hidden, root / "hidden")
    return tuple(mounts)


def hide_files(checkout: Path, commit: str, names: Sequence[str], place: Path) -> list[Mount]:
    """Mounts that empty some files of a checkout, and leave of its repository the name of `HEAD`.

    `place` is made for what is shown instead.
    """
    for folder in ("git/objects", "git/refs"):
        (place / folder).mkdir(parents=True)
    (place / "git" / "HEAD").write_text(f"{commit}\n")
    (place / "empty").touch()
    return [
        Mount(path=str(checkout / ".git"), source=str(place / "git")),
        *(Mount(path=str(checkout / name), source=str(place / "empty")) for name in names),
    ]


def _inject_files(context: SessionContext, arm: ProcessArm, target: Path) -> Path:
    """Copy the arm's declared files, each where it stood relative to the configuration.

    Returns:
        The folder that mirrors the configuration's.
    """
    config_dir = Path(os.path.normpath(context.config_dir.absolute()))
    declared = declared_files(
        arm, config_dir=context.config_dir, has_product=context.point is not None
    )
    sources = [Path(os.path.normpath(config_dir / name)) for name in declared]
    base = Path(os.path.commonpath([config_dir, *sources]))
    mirror = target / config_dir.relative_to(base)
    mirror.mkdir(parents=True)
    for source in sources:
        place = target / source.relative_to(base)
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(
                source,
                place,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(BYTECODE_FOLDER),
                ignore_dangling_symlinks=True,
            )
        else:
            shutil.copy(source, place)
    return mirror


def session_environment(arm: ProcessArm, root: Path, view: View) -> dict[str, str]:
    """The whole environment of a session's processes: nothing else is passed on.

    In the sandbox PATH is the system's, behind the declared programs; else it is the user's, less
    relative entries and coldrun's own virtual environment. `env` passes declared variables on and
    `set_env` sets them. Git searches for no repository above the session's folder and reads no
    configuration of the user's.
    """
    environment = {
        "PATH": f"{root / 'bin'}:{view.search_path}" if view.is_sandboxed else view.search_path,
        "LANG": "C.UTF-8",
        "GIT_CEILING_DIRECTORIES": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    environment.update({name: os.environ[name] for name in arm.env if name in os.environ})
    environment.update(arm.set_env)
    environment.update({name: str(root / folder) for name, folder in PRIVATE_FOLDERS.items()})
    return environment


def prune_sessions(scratch: Path) -> tuple[str, ...]:
    """Remove the folders of sessions whose run is dead, and end what still runs in them.

    Returns:
        The removed folders' names, sorted.
    """
    removed = []
    sessions = scratch.resolve() / "sessions"
    for root in sorted({path.with_suffix("") for path in sessions.glob("*/*")}):
        lock = try_lock(root.with_suffix(".lock"))
        if lock is None:
            continue
        if root.exists():  # else its program died between the lock and the folder
            end_strays(root / "home")
            remove_folder(root)
            removed.append(str(root.relative_to(scratch.resolve())))
        root.with_suffix(".lock").unlink(missing_ok=True)
        lock.release()
        with contextlib.suppress(OSError):
            root.parent.rmdir()
    return tuple(removed)
