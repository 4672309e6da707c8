"""Which tickets the commits of one repository name. Runs in a process of its own."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Revision
from coldrun.tasks.mine.candidates import is_bot
from coldrun.tasks.mine.query import clean_message
from coldrun.tasks.mine.ticket_file import ticket_key

_FLAGS = re.compile(r"^(?:\(\?[a-zA-Z]+\))+")


@dataclass(frozen=True, slots=True)
class TicketQuery:
    """What to look for in a repository. Moments are seconds since 1970 in UTC."""

    name: str
    location: str
    pattern: str
    branch: str | None
    wants_text: bool
    after: int | None
    until: int | None


class NamingCommit(NamedTuple):
    """A commit that names a ticket. `message` is empty where no text is wanted."""

    committed: int
    commit: str
    message: bytes


@dataclass(frozen=True, slots=True)
class RepositoryTickets:
    """What the commits of one repository say.

    `naming` has, for each ticket named after base, the earliest commit that names it; `begun`
    holds the tickets that a commit up to base names; `base` is None when the repository has no
    commit yet at base, and `is_empty` says that it has none at all. `covering` counts commits whose
    subject is one match from end to end.
    """

    name: str
    base: Revision | None
    is_empty: bool
    commits: int
    commits_before_base: int
    matching: int
    matches: int
    covering: int
    naming: dict[str, NamingCommit]
    counts: dict[str, int]
    begun: frozenset[str]


@lru_cache(maxsize=8)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The ticket pattern between word boundaries, so that "AB-12" is not found in "AB-123x".

    Flags at its start, such as (?i), hold for all of it.

    Raises:
        re.error: It is not a regular expression.
    """
    flags = re.compile(pattern).flags
    return re.compile(rf"(?<!\w)(?:{_FLAGS.sub('', pattern)})(?!\w)", flags)


def read_repository_tickets(query: TicketQuery) -> RepositoryTickets:
    """Read the commits of one repository, on all branches or one, in one `git log`.

    Commits by bots name nothing; merges name like any commit. One without commits names nothing,
    and does not exist at base.
    """
    repository = Repository.open(Path(query.location))
    repository.refuse_incomplete()
    log = _TicketLog(compile_pattern(query.pattern), query)
    if repository.is_empty():
        return log.result(None, is_empty=True)
    tip = _find_tip(repository, query)
    revisions = [] if query.branch is None else [tip.commit]
    for entry in repository.stream_messages(revisions):
        if query.until is None or entry.committed <= query.until:
            is_named_by_bot = is_bot(entry.author_name, entry.author_email)
            message = b"" if is_named_by_bot else entry.message
            log.add(entry.commit, entry.committed, message)
    base: Revision | None = tip
    moment = query.until if query.after is None else query.after
    if moment is not None:
        base = repository.find_before(tip.commit, moment)
    return log.result(base)


class _TicketLog:
    def __init__(self, pattern: re.Pattern[str], query: TicketQuery) -> None:
        self._pattern = pattern
        self._query = query
        self._commits = self._before = self._matching = self._matches = self._covering = 0
        self._naming: dict[str, NamingCommit] = {}
        self._counts: Counter[str] = Counter()
        self._begun: set[str] = set()

    def add(self, commit: str, committed: int, message: bytes) -> None:
        """Take in one commit."""
        self._commits += 1
        after = self._query.after
        is_before = after is None or committed <= after
        self._before += is_before
        raw_text = message.decode("utf-8", "replace")
        found = {_found_key(match) for match in self._pattern.finditer(raw_text)}
        if not found:
            return
        self._matching += 1
        self._matches += len(found)
        self._covering += self._pattern.fullmatch(raw_text.partition("\n")[0].strip()) is not None
        if after is not None and is_before:
            self._begun |= found
            return
        naming = NamingCommit(committed, commit, message if self._query.wants_text else b"")
        for key in found:
            self._counts[key] += 1
            if key not in self._naming or naming < self._naming[key]:
                self._naming[key] = naming

    def result(self, base: Revision | None, *, is_empty: bool = False) -> RepositoryTickets:
        """What was found."""
        return RepositoryTickets(
            name=self._query.name,
            base=base,
            is_empty=is_empty,
            commits=self._commits,
            commits_before_base=self._before,
            matching=self._matching,
            matches=self._matches,
            covering=self._covering,
            naming=self._naming,
            counts=dict(self._counts),
            begun=frozenset(self._begun),
        )


def derive_text(message: bytes, pattern: re.Pattern[str], *, subject_only: bool) -> str:
    """A message without ticket ids, which would lead to the answer wherever a file has them."""
    text = clean_message(message, subject_only=subject_only)
    around = rf"[\[(]?{pattern.pattern}[\])]?(?:[ \t]*[:,])?"
    bare = re.sub(around, "", text, flags=pattern.flags)
    lines = [re.sub(r"[ \t]{2,}", " ", line).strip(" \t") for line in bare.split("\n")]
    return "\n".join(lines).strip(" \t\n-–:,;.")


def _found_key(match: re.Match[str]) -> str:
    found = match["id"] if "id" in match.re.groupindex else None
    return ticket_key(found or match[0], ignore_case=bool(match.re.flags & re.IGNORECASE))


def _find_tip(repository: Repository, query: TicketQuery) -> Revision:
    if query.branch is None:
        return repository.resolve("HEAD")
    for name in (f"refs/heads/{query.branch}", f"refs/remotes/origin/{query.branch}"):
        if repository.has_commit(name):
            return repository.resolve(name)
    raise RepositoryError(
        f"repository {query.name} has no branch {query.branch!r}; "
        "leave `branch` out to read all branches"
    )
