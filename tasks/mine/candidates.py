"""From the commits of a range to tasks and counted drops: pure, and the same for every base."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import pathspec

from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.git.commit_log import Change, LogEntry
from coldrun.tasks.lib.git.path_text import encode_path
from coldrun.tasks.lib.records import DROP_REASONS, AnswerKind, Dropped, GoldItem, Task
from coldrun.tasks.mine.junk import find_junk
from coldrun.tasks.mine.query import clean_text, decode_message, split_merge_title
from coldrun.tasks.mine.task_strata import describe_strata


class NamesAtBase:
    """Which file at base a path of a later commit is; commits are taken in parents first.

    A rename carries the name at base along; the old name then means a file that base lacks. Each
    commit sees the renames among its own ancestors only; those made while merging are not seen.
    """

    def __init__(self, base_paths: Collection[bytes]) -> None:
        self._base_paths = base_paths
        # For each path, the renames that gave or took the name: (number, name at base or None).
        self._events: dict[bytes, list[tuple[int, bytes | None]]] = {}
        # For each commit, the numbers of the renaming commits it descends from, as bits.
        self._seen: dict[str, int] = {}
        self._count = 0
        self.renamed_paths: Collection[bytes] = self._events.keys()
        """The paths whose meaning depends on the commit; any other means itself."""

    def add(self, entry: LogEntry) -> int:
        """Take in a commit; returns what it has seen, to ask `find` about its own changes."""
        seen = 0
        for parent in entry.parents:
            seen |= self._seen.get(parent, 0)
        renames = [change for change in entry.changes if change[0] == "R"]
        after = seen
        if renames and self._record(renames, seen):
            after |= 1 << self._count
            self._count += 1
        if after:
            self._seen[entry.commit] = after
        return seen

    def find(self, seen: int, path: bytes) -> bytes | None:
        """The name at base of the file `path` was to a commit that has `seen` so much, or None."""
        for number, name in reversed(self._events.get(path, ())):
            if seen >> number & 1:
                return name
        return path if path in self._base_paths else None

    def find_all(self, seen: int, path: bytes) -> list[bytes]:
        """All names at base that a search may give for `path`: that of the file it was, and its
        own where another file was renamed onto a path that base has."""
        name = self.find(seen, path)
        if name is None:
            return []
        return [name, path] if name != path and path in self._base_paths else [name]

    def _record(self, renames: list[Change], seen: int) -> bool:
        # All names are looked up, then all sources given up, then all targets taken: a commit
        # may rename b to c and a to b at once.
        taken = [(change.path, self.find(seen, change.source or b"")) for change in renames]
        given_up: list[tuple[bytes, bytes | None]] = [
            (change.source or b"", None) for change in renames
        ]
        is_recorded = False
        for path, name in given_up + taken:
            if name is not None or path in self._base_paths or path in self._events:
                self._events.setdefault(path, []).append((self._count, name))
                is_recorded = True
        return is_recorded


TASK_ID_PREFIX = "coldrun-task-1\n"
"""What is hashed before a query; the number changes when ids have to."""

_BOT_NAME = re.compile(
    r"\[bot\]|\b(?:dependabot|renovate|pre-commit-ci|github-actions|greenkeeper|snyk-bot|pyup-bot"
    r"|mergify|allcontributors|imgbot|weblate|semantic-release-bot|scala-steward|codecov-commenter"
    r"|lgtm-com|deepsource-autofix|restyled-commits)\b|(?:^|[-_ ])bot$",
    re.IGNORECASE,
)
_BOT_BRANCH = re.compile(r"\b(?:dependabot|renovate|pre-commit-ci|greenkeeper|snyk|pyup)[-/]")
LONGEST_SUBJECT = 100
"""Characters of a dropped candidate's message that are kept."""

_LAST_SECOND = 253_402_300_799
_SUBMODULE_SIDES = frozenset({"160000", "000000"})


class Candidate(NamedTuple):
    """A commit or merge as a possible task. `reason` is set when the message alone rules it out."""

    entry: LogEntry
    query: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MiningRules:
    """What decides which candidates are tasks, apart from the history itself."""

    unit: Literal["commit", "merge"] = "commit"
    subject_only: bool = False
    answer: AnswerKind = "ranking"
    exclude_gold: tuple[str, ...] = ()
    max_gold: int | None = None
    drop: tuple[str, ...] = ()
    duplicates: Literal["union", "newest", "drop"] = "newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """Tasks and dropped candidates, newest first, and counts of the latter by each reason."""

    tasks: tuple[Task, ...]
    drops: Mapping[str, int]
    dropped: tuple[Dropped, ...]


class GoldRules:
    """Which files can be gold, by the exclusion patterns (gitignore syntax)."""

    def __init__(self, patterns: Iterable[str]) -> None:
        try:
            self._spec = pathspec.GitIgnoreSpec.from_lines(patterns)
        except ValueError as error:
            raise PanelError(f"exclude_gold: {error}; write gitignore patterns") from None
        self._known: dict[str, bool] = {}

    def is_excluded(self, path: str) -> bool:
        """Whether `path` matches the patterns."""
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._spec.match_file(path)
        return known


def prepare_candidate(entry: LogEntry, rules: MiningRules) -> Candidate:
    """What the message and author of a commit say about it, for any base."""
    text = decode_message(entry.message)
    title = split_merge_title(text)
    is_merge = len(entry.parents) > 1
    if is_merge and (rules.unit == "commit" or title.is_sync):
        return Candidate(entry, "", "merge")
    is_bot_branch = title.source and _BOT_BRANCH.search(title.source)
    if is_bot_branch or is_bot(entry.author_name, entry.author_email):
        return Candidate(entry, "", "bot_author")
    query = clean_text(title.text, subject_only=rules.subject_only)
    reason = (find_junk(query) if rules.drop else None) if query else "empty_query"
    return Candidate(entry, query, reason if reason in (*rules.drop, "empty_query") else None)


class TaskDerivation:
    """Decides candidates one by one, parents before children: a task, or the first reason against.

    Args:
        rules: The panel's rules.
        gold: The exclusion patterns, compiled.
        base_paths: The files at the panel's base; None when each task's corpus is its own first
            parent.
    """

    def __init__(
        self, rules: MiningRules, gold: GoldRules, base_paths: Collection[bytes] | None
    ) -> None:
        self._rules = rules
        self._names = None if base_paths is None else NamesAtBase(base_paths)
        self._finder = _GoldFinder(rules, gold, self._names)
        self._dropped: list[tuple[int, Dropped]] = []
        self._tasks: list[tuple[int, str, Task]] = []
        self.count = 0
        """How many candidates were added."""

    def add(self, candidate: Candidate) -> None:
        """Decide a candidate; duplicates are decided at the end."""
        self.count += 1
        entry = candidate.entry
        seen = 0 if self._names is None else self._names.add(entry)
        found = candidate.reason or self._finder.find(entry, seen)
        if isinstance(found, str):
            self._drop(entry, found)
        else:
            task = _make_task(candidate, found, self._rules, per_task_base=self._names is None)
            self._tasks.append((-entry.committed, entry.commit, task))

    def result(self) -> Mined:
        """The tasks, newest by committer time first, ties by full commit name, ascending."""
        same: dict[str, list[tuple[int, str, Task]]] = {}
        for ranked in sorted(self._tasks, key=lambda ranked: ranked[:2]):
            same.setdefault(ranked[2].id, []).append(ranked)
        tasks, dropped = [], list(self._dropped)
        for found in same.values():
            if len({task.query for _, _, task in found}) > 1:
                raise PanelError(f"two queries have the task id {found[0][2].id}; please report it")
            task = self._join([task for _, _, task in found])
            leaving = found if task is None else found[1:]
            if task is not None and len(task.gold) > (self._rules.max_gold or len(task.gold)):
                dropped.append(_describe_drop(*found[0], "too_many_files"))
            elif task is not None:
                tasks.append(task)
            dropped += [_describe_drop(*ranked, "duplicate") for ranked in leaving]
        dropped.sort(key=lambda ranked: (ranked[0], ranked[1].commit))
        drops = Counter(each.reason for _, each in dropped)
        return Mined(
            tasks=tuple(tasks),
            drops={reason: drops[reason] for reason in DROP_REASONS},
            dropped=tuple(each for _, each in dropped),
        )

    def _join(self, tasks: list[Task]) -> Task | None:
        """What is asked of tasks with one query, newest first; None where none is."""
        newest, *others = tasks
        if not others or self._rules.duplicates == "newest" or newest.base is not None:
            return newest
        if self._rules.duplicates == "drop":
            return None
        items = sorted({gold.item for task in tasks for gold in task.gold})
        gold = tuple(map(_gold_item, items))
        return replace(newest, gold=gold, strata=describe_strata(newest.query, items))

    def _drop(self, entry: LogEntry, reason: str) -> None:
        subject = decode_message(entry.message).partition("\n")[0][:LONGEST_SUBJECT]
        self._dropped.append((-entry.committed, Dropped(entry.commit, reason, subject)))


def _describe_drop(rank: int, commit: str, task: Task, reason: str) -> tuple[int, Dropped]:
    subject = task.query.partition("\n")[0][:LONGEST_SUBJECT]
    return rank, Dropped(commit, reason, subject)


def make_task_id(query: str) -> str:
    """The id of a mined task: it depends on the query alone and tells nothing of the answer."""
    digest = hashlib.sha256((TASK_ID_PREFIX + query).encode("utf-8")).hexdigest()
    return f"t{digest[:16]}"


def format_date(seconds: int) -> str:
    """Seconds since 1970 as ISO 8601 in UTC; a clock beyond the year 9999 counts as its end."""
    return dt.datetime.fromtimestamp(min(seconds, _LAST_SECOND), dt.UTC).isoformat()[:19] + "Z"


class _GoldFinder:
    """The gold of commits, with what is known of paths kept between them."""

    def __init__(self, rules: MiningRules, gold: GoldRules, names: NamesAtBase | None) -> None:
        self._max_gold = rules.max_gold
        self._gold = gold
        self._names = names
        self._renamed: Collection[bytes] = () if names is None else names.renamed_paths
        self._text: dict[bytes, str] = {}
        self._plain: dict[bytes, list[tuple[str | None, bool]]] = {}

    def find(self, entry: LogEntry, seen: int) -> str | list[str]:
        """The gold items of a commit, sorted, or the reason why it has none."""
        touched = False
        included = False
        items: set[str] = set()
        for change in entry.changes:
            if change.new_mode in _SUBMODULE_SIDES and change.old_mode in _SUBMODULE_SIDES:
                continue
            touched = True
            for item, is_excluded in self._decide(change, seen):
                if not is_excluded:
                    included = True
                    if item is not None:
                        items.add(item)
        if not touched:
            return "no_file"
        if not included:
            return "only_excluded"
        if not items:
            return "created_after_base"
        if self._max_gold is not None and len(items) > self._max_gold:
            return "too_many_files"
        return sorted(items)

    def _decide(self, change: Change, seen: int) -> list[tuple[str | None, bool]]:
        """Patterns match the name at base, or the file's own name when it came later."""
        before = change.source if change.status == "R" and change.source else change.path
        if self._names is None:
            # The corpus is the first parent, where all but the added and copied files are.
            name = None if change.status in "AC" or change.old_mode == "160000" else before
            return [self._judge(name, change.path)]
        if change.status == "R" or before in self._renamed:
            names = self._names.find_all(seen, before)
            if change.status == "R" and self._names.find(seen, change.path) == change.path:
                names.append(change.path)  # it replaces a file that base has
            if not names:
                return [self._judge(None, change.path)]
            return [self._judge(name, change.path) for name in names]
        known = self._plain.get(before)
        if known is None:
            name = self._names.find(seen, before)
            known = self._plain[before] = [self._judge(name, change.path)]
        return known

    def _judge(self, name: bytes | None, path: bytes) -> tuple[str | None, bool]:
        if name is None:
            return None, self._gold.is_excluded(self._encode(path))
        item = self._encode(name)
        return item, self._gold.is_excluded(item)

    def _encode(self, path: bytes) -> str:
        text = self._text.get(path)
        if text is None:
            text = self._text[path] = encode_path(path)
        return text


def _make_task(
    candidate: Candidate, items: list[str], rules: MiningRules, *, per_task_base: bool
) -> Task:
    entry = candidate.entry
    return Task(
        id=make_task_id(candidate.query),
        query=candidate.query,
        answer=rules.answer,
        gold=tuple(map(_gold_item, items)),
        date=format_date(entry.committed),
        base=entry.parents[0] if per_task_base else None,
        strata=describe_strata(candidate.query, items),
    )


@lru_cache(maxsize=1 << 16)
def _gold_item(item: str) -> GoldItem:
    return GoldItem(item=item)


@lru_cache(maxsize=1 << 14)
def is_bot(name: str, email: str) -> bool:
    """Whether an author is a program, by the name or by the part of the address before the @."""
    account = email.partition("@")[0]
    return _BOT_NAME.search(name) is not None or _BOT_NAME.search(account) is not None
