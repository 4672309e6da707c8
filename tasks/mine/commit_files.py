"""`commit-files`: each commit (or merge) of a range is a task, the files it touched are gold.

Units. `unit = "commit"` takes every commit of `base..head` and drops merges. `unit = "merge"`
walks the first parents of head: a merge is a task whose gold is its difference to its first
parent and whose query is the title and body of the pull request; a merge that only brings a
branch up to date is dropped (reason `merge`, the forms are in `tasks.mine.query`); a commit made
or squashed right on that line is a task like any other.

Gold. All files a commit touched (content or mode; symbolic links are files, submodules are not)
that exist at base, under their names there (`NamesAtBase`). A file that the commit deletes is
gold, since it had to be found; a copy or a new file is not.

Base. `base = "parent"` gives each task its own corpus, the tree of its first parent; the range is
then the newest `last` commits of head. What the panel itself says (items, change counts) is then
said of the oldest task's base, which every task may know.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.commit_log import LogEntry
from coldrun.tasks.lib.git.path_text import encode_path
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import MinedPanel, Revision
from coldrun.tasks.mine.candidates import (
    GoldRules,
    MiningRules,
    TaskDerivation,
    prepare_candidate,
)

CHANGE_COUNT_COMMITS = 5000
"""How many commits up to base the change counts look at, merges left out."""

PARENT_BASE_COMMITS = 1000
"""How many commits a panel with `base = "parent"` looks at, unless it says `last`."""


def mine_commit_files(repository: Repository, spec: PanelConfig) -> MinedPanel:
    """Mine a `commit-files` panel from one streaming `git log` of the whole range."""
    repository.refuse_incomplete()
    head = repository.resolve(spec.head)
    with _paused_collector():
        if spec.base == "parent":
            return _mine_parents(repository, spec, head)
        return _mine_range(repository, spec, _resolve_base(repository, spec, head), head)


def mining_rules(spec: PanelConfig) -> MiningRules:
    """The rules that a panel's configuration sets."""
    return MiningRules(
        unit=spec.unit,
        subject_only=spec.query == "subject",
        answer=spec.answer_kind,
        exclude_gold=spec.exclude_gold,
        max_gold=spec.max_gold,
        drop=spec.drop,
        duplicates=spec.duplicates,
    )


def log_options(spec: PanelConfig) -> dict[str, Any]:
    """How `Repository.stream_log` has to walk for a panel's unit and rename policy."""
    is_merge_unit = spec.unit == "merge"
    return {
        "follow_renames": spec.renames == "follow",
        "merges": "first-parent" if is_merge_unit else "without-diff",
        "first_parent": is_merge_unit,
        "oldest_first": True,
    }


def list_items(repository: Repository, tree: str) -> dict[bytes, str]:
    """Files and symbolic links of a tree: their paths as bytes and as items."""
    entries = repository.list_tree(tree)
    return {entry.raw_path: entry.path for entry in entries if entry.kind != "submodule"}


def _generated(repository: Repository, tree: str) -> list[str]:
    """Patterns of the files that the repository's own `.gitattributes` calls generated."""
    rules = (line.split() for line in repository.read_file(tree, ".gitattributes").splitlines())
    marks = (b"linguist-generated", b"linguist-generated=true")
    return [
        encode_path(pattern)
        for pattern, *attributes in filter(None, rules)
        if not pattern.startswith(b"#") and any(mark in attributes for mark in marks)
    ]


def count_item_changes(
    repository: Repository, base: Revision, items: dict[bytes, str]
) -> dict[str, int]:
    """How many of the last commits up to `base` changed each item, excluded files or not."""
    return _possible_gold(_count_changes(repository, base.commit), items, GoldRules(()))


def _resolve_base(repository: Repository, spec: PanelConfig, head: Revision) -> Revision:
    base = repository.resolve(spec.base or "")
    if base.commit == head.commit:
        raise RepositoryError(
            f"the range {spec.base}..{spec.head} is empty: both are {base.commit}; "
            "choose an older base"
        )
    if not repository.is_ancestor(base.commit, head.commit):
        common = repository.merge_base(base.commit, head.commit)
        hint = f"their common ancestor is {common}" if common else "they share no history"
        raise RepositoryError(f"base {spec.base} is not an ancestor of head {spec.head}; {hint}")
    return base


def _mine_range(
    repository: Repository, spec: PanelConfig, base: Revision, head: Revision
) -> MinedPanel:
    rules = mining_rules(spec)
    gold = GoldRules((*rules.exclude_gold, *_generated(repository, base.tree)))
    with ThreadPoolExecutor(max_workers=1) as pool:
        counts_later = pool.submit(_count_changes, repository, base.commit)
        log = repository.stream_log([head.commit, f"^{base.commit}"], **log_options(spec))
        items = list_items(repository, base.tree)
        derivation = _derive(log, rules, gold, items.keys())
        mined = derivation.result()
        counts = counts_later.result()
    return MinedPanel(
        tasks=mined.tasks,
        drops=mined.drops,
        dropped=mined.dropped,
        candidates=derivation.count,
        base=base,
        head=head,
        corpora={".": base},
        items=tuple(sorted(items.values())),
        change_counts=_possible_gold(counts, items, gold),
    )


def _mine_parents(repository: Repository, spec: PanelConfig, head: Revision) -> MinedPanel:
    rules = mining_rules(spec)
    gold = GoldRules((*rules.exclude_gold, *_generated(repository, head.tree)))
    last = spec.last or PARENT_BASE_COMMITS
    log = repository.stream_log([head.commit], last=last, **log_options(spec))
    derivation = _derive(log, rules, gold, None)
    mined = derivation.result()
    corpora: dict[str, Revision] = {}
    items: dict[bytes, str] = {}
    counts: Counter[bytes] = Counter()
    if mined.tasks:
        oldest = repository.resolve(mined.tasks[-1].base or "")
        corpora = {".": oldest}
        items = list_items(repository, oldest.tree)
        counts = _count_changes(repository, oldest.commit)
    return MinedPanel(
        tasks=mined.tasks,
        drops=mined.drops,
        dropped=mined.dropped,
        candidates=derivation.count,
        base=None,
        head=head,
        corpora=corpora,
        items=tuple(sorted(items.values())),
        change_counts=_possible_gold(counts, items, gold),
    )


def _derive(
    log: Iterable[LogEntry],
    rules: MiningRules,
    gold: GoldRules,
    base_paths: Collection[bytes] | None,
) -> TaskDerivation:
    derivation = TaskDerivation(rules, gold, base_paths)
    for entry in log:
        derivation.add(prepare_candidate(entry, rules))
    return derivation


@contextmanager
def _paused_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _count_changes(repository: Repository, head: str) -> Counter[bytes]:
    return Counter(repository.stream_changed_paths(head, last=CHANGE_COUNT_COMMITS))


def _possible_gold(
    counts: Counter[bytes], items: dict[bytes, str], gold: GoldRules
) -> dict[str, int]:
    return {
        item: counts[path]
        for path, item in sorted(items.items())
        if counts[path] and not gold.is_excluded(item)
    }
