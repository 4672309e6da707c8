"""The commits that `--commits`, `--from` and `--to` mean, read from the product's repository."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from coldrun.tasks.config import ProductConfig
from coldrun.tasks.history.history_plan import HistoryCommit
from coldrun.tasks.lib.errors import ConfigError, RepositoryError, UsageError
from coldrun.tasks.lib.git.clone import ensure_clone, is_url, open_source
from coldrun.tasks.lib.git.commit_log import LogEntry
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.product.points import WORKTREE
from coldrun.tasks.run.prepare import Evaluation

NEW = "NEW"
TAGS = "refs/tags/"


def open_product(evaluation: Evaluation, *, update: bool = False) -> Repository:
    """The repository of the product, with its whole history."""
    product = require_product(evaluation)
    if is_url(product.repo):
        ensure_clone(product.repo, evaluation.scratch, update=update)
    folder = evaluation.config_dir
    return open_source(product.repo, relative_to=folder, scratch=evaluation.scratch)


def require_product(evaluation: Evaluation) -> ProductConfig:
    """The product of an evaluation."""
    product = evaluation.config.product
    if product is None:
        raise ConfigError(
            f"{evaluation.config_path} has no [product], so it has no history; name the "
            "repository of the code under test in [product] repo"
        )
    return product


def product_tip(repository: Repository, product: ProductConfig) -> str:
    """The newest commit: what `commit` of the configuration means now."""
    revision = "HEAD" if product.commit == WORKTREE else product.commit
    return repository.resolve(revision).commit


def select_commits(
    repository: Repository, text: str, *, is_first_parent: bool = True
) -> tuple[HistoryCommit, ...]:
    """The commits that `--commits` means, oldest first.

    `text` is `A..B` (both ends included; first parents only, unless told otherwise), a pattern of
    tag names (`v2.*`), or revisions separated by commas or spaces.
    """
    first, dots, last = text.partition("..")
    if dots:
        ends = first or "HEAD", last.removeprefix(".") or "HEAD"
        return list_range(repository, *ends, is_first_parent=is_first_parent)
    if any(mark in text for mark in "*?["):
        names = [tag for tag in repository.list_tags() if fnmatch.fnmatchcase(tag, text)]
        if not names:
            raise UsageError(f"no tag of {repository.git_dir} fits {text!r}; `git tag` lists them")
        return list_named(repository, [f"{TAGS}{name}" for name in names], source=text)
    names = [name for name in re.split(r"[\s,]+", text) if name]
    return list_named(repository, names, source="--commits")


def list_range(
    repository: Repository, first: str, last: str, *, is_first_parent: bool = True
) -> tuple[HistoryCommit, ...]:
    """The commits from `first` to `last`, both included, oldest first."""
    start, end = repository.resolve(first).commit, repository.resolve(last).commit
    if start == end:
        raise RepositoryError(
            f"{first}..{last} is empty: both are {start}; name two different commits"
        )
    base = repository.merge_base(start, end)
    if base == end:
        raise RepositoryError(
            f"{first}..{last} is reversed: {last} comes before {first}; say {last}..{first}"
        )
    if base is None:
        raise RepositoryError(f"{first} and {last} share no history; name two commits of one line")
    if base != start:
        raise RepositoryError(
            f"{first} is no ancestor of {last}: they part at {base}; say {base[:12]}..{last}, or "
            "list the commits one by one"
        )
    newer = repository.stream_log(
        [end, f"^{start}"],
        follow_renames=False,
        merges="first-parent",
        first_parent=is_first_parent,
    )
    return _to_commits([*repository.read_commits([start]), *reversed(list(newer))])


def list_named(
    repository: Repository, names: Sequence[str], *, source: str
) -> tuple[HistoryCommit, ...]:
    """Named commits, each once, by the committer's clock, oldest first.

    `source` is where the names come from, for the error.
    """
    found: dict[str, None] = {}
    for name in names:
        try:
            found[repository.resolve(name).commit] = None
        except RepositoryError as error:
            what, hint = name.removeprefix(TAGS), str(error).partition("; ")[2]
            raise RepositoryError(
                f"{source}: {what} is no commit of {repository.git_dir}; {hint}"
            ) from None
    if not found:
        raise UsageError(f"{source} names no commit; write one revision on each line")
    commits = sorted(
        _to_commits(repository.read_commits(list(found))), key=lambda commit: commit.committed
    )
    return (
        *commits[:1],
        *(
            replace(newer, distance=_count_between(repository, older, newer))
            for older, newer in pairwise(commits)
        ),
    )


def list_new(
    repository: Repository, tip: str, measured: Collection[str]
) -> tuple[HistoryCommit, ...]:
    """The commits on the first-parent line up to `tip` since the newest measured one, oldest first.

    The `tip` alone when nothing on the line was measured; empty when `tip` was.
    """
    newer: list[LogEntry] = []
    known = set(measured)
    line = repository.stream_log(
        [tip], follow_renames=False, merges="first-parent", first_parent=True
    )
    for entry in line:
        if entry.commit in known or entry.tree in known:
            return _to_commits(reversed(newer))
        newer.append(entry)
    return _to_commits(newer[:1])


def _count_between(repository: Repository, older: HistoryCommit, newer: HistoryCommit) -> int:
    names = [newer.commit, f"^{older.commit}"]
    return max(1, sum(1 for _ in repository.stream_log(names, first_parent=True)))


def read_list(text: str) -> str:
    """What `--commits` says: the revisions in the file of that name, or the text as it is."""
    if not os.path.isfile(text):  # noqa: PTH113 - a long list of revisions is no path at all
        return text
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", error)
        raise UsageError(f"cannot read {text}: {why}") from None
    names = [words[0] for line in lines if (words := line.partition("#")[0].split())]
    if not names:
        raise UsageError(f"{text} names no commit; write one revision on each line")
    return ",".join(names)


def _to_commits(entries: Iterable[LogEntry]) -> tuple[HistoryCommit, ...]:
    return tuple(
        HistoryCommit(
            commit=entry.commit,
            tree=entry.tree,
            subject=entry.message.decode("utf-8", "replace").strip().partition("\n")[0],
            committed=entry.committed,
            paths=tuple(
                name.decode("utf-8", "replace")
                for change in entry.changes
                for name in (change.path, change.source)
                if name is not None
            ),
        )
        for entry in entries
    )
