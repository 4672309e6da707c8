"""Choosing a base for someone who has not: the newest one with enough solvable tasks."""

from __future__ import annotations

from collections.abc import Sequence

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.commit_log import LogEntry
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Revision
from coldrun.tasks.mine.candidates import Candidate, GoldRules, TaskDerivation, prepare_candidate
from coldrun.tasks.mine.commit_files import list_items, log_options, mining_rules

_WINDOW_COMMITS = 2000
_WINDOW_PER_TASK = 20
_EVEN_TRIES = 16


def pick_base(repository: Repository, head: str, spec: PanelConfig, *, wanted: int) -> Revision:
    """The newest first-parent ancestor of `head` from which about `wanted` tasks are solvable.

    An older base brings more commits but lacks more of their files, so the number is not strictly
    growing; it is taken to grow until `wanted` is reached. Where it never is, the base with the
    most tasks among those tried wins, the newest of equals. `base` in `spec` is not looked at.
    """
    repository.refuse_incomplete()
    commit = repository.resolve(head).commit
    window = max(_WINDOW_COMMITS, _WINDOW_PER_TASK * wanted)
    search = _BaseSearch(repository, commit, spec, last=window)
    found = search.find(wanted)
    if search.count(found) < wanted and len(search.entries) == window:
        search = _BaseSearch(repository, commit, spec, last=None)
        found = search.find(wanted)
    if search.count(found) == 0:
        raise RepositoryError(
            f"no base before {head} leaves a solvable task: each of {len(search.entries)} commits "
            "touches only files that came later, or its message asks nothing; name a repository "
            "with more history"
        )
    return repository.resolve(search.chain[found])


class _BaseSearch:
    """Counts solvable tasks for bases on the first-parent chain, from one log held in memory."""

    def __init__(
        self, repository: Repository, head: str, spec: PanelConfig, *, last: int | None
    ) -> None:
        self._repository = repository
        self._rules = mining_rules(spec)
        self._gold = GoldRules(self._rules.exclude_gold)
        log = repository.stream_log([head], last=last, **log_options(spec))
        self._candidates: list[Candidate] = [prepare_candidate(entry, self._rules) for entry in log]
        self.entries = [candidate.entry for candidate in self._candidates]
        self._by_commit = {entry.commit: entry for entry in self.entries}
        self.chain = self._first_parents(head)
        self._depths = self._find_depths()
        self._counts = {0: 0}

    def find(self, wanted: int) -> int:
        """The position on the chain of the newest base that reaches `wanted`, else of the best."""
        last = len(self.chain) - 1
        below, at = 0, min(last, max(1, wanted // 2))
        while self.count(at) < wanted and at < last:
            below, at = at, min(last, at * 2)
        if self.count(at) < wanted:
            return self._find_best(last)
        while at - below > 1:
            middle = (below + at) // 2
            if self.count(middle) < wanted:
                below = middle
            else:
                at = middle
        return at

    def count(self, position: int) -> int:
        """How many tasks are solvable with the commit at `position` of the chain as base."""
        if position not in self._counts:
            tree = self._by_commit[self.chain[position]].tree
            paths = list_items(self._repository, tree)
            derivation = TaskDerivation(self._rules, self._gold, paths.keys())
            for candidate in self._candidates:
                if self._depths.get(candidate.entry.commit, -1) < position:
                    derivation.add(candidate)
            self._counts[position] = len(derivation.result().tasks)
        return self._counts[position]

    def _find_best(self, last: int) -> int:
        for step in range(1, _EVEN_TRIES + 1):
            self.count(last * step // _EVEN_TRIES)
        return max(sorted(self._counts), key=lambda position: self._counts[position])

    def _first_parents(self, head: str) -> Sequence[str]:
        chain = []
        entry: LogEntry | None = self._by_commit.get(head)
        while entry is not None:
            chain.append(entry.commit)
            entry = self._by_commit.get(entry.parents[0]) if entry.parents else None
        return chain

    def _find_depths(self) -> dict[str, int]:
        depths: dict[str, int] = {}
        for position in range(len(self.chain) - 1, -1, -1):
            waiting = [self.chain[position]]
            while waiting:
                commit = waiting.pop()
                if commit in depths or commit not in self._by_commit:
                    continue
                depths[commit] = position
                waiting.extend(self._by_commit[commit].parents)
        return depths
