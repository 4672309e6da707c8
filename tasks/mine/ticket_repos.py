"""`ticket-repos`: each ticket is a task, the repositories whose commits name it are gold.

Items are names of repositories: the last part of their path or URL. A commit names a ticket when
its raw message, trailers included, holds the pattern between word boundaries; which files it
changed does not matter. Commits by bots name nothing.

Text. With a tickets file, its title and body; else the earliest commit that names the ticket,
without ids (stratum `text`: "given" or "derived"). Derived text comes from one of the gold
repositories and is that much easier.

Time. `base` and `head` are dates here (head may stay "HEAD"), compared with the committer's
clock, because repositories share no commit. The range is after base, up to head, as for commits:
a ticket that a commit up to base names was begun before and is not a candidate. The corpus of a
repository is the last commit of its main line up to base, so no tree holds work on a ticket that
is asked about; a repository without one, such as an empty one, does not exist at base and cannot be
gold. Without `base`
nothing can be frozen before all tickets, whose history may go back to the first commit: the trees
are then those of head, with the work in them, and a note says so.
"""

from __future__ import annotations

import glob
import multiprocessing
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.errors import PanelError, RepositoryError
from coldrun.tasks.lib.git.clone import ensure_clone, is_url
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.plain_text import counted, noun
from coldrun.tasks.lib.records import DROP_REASONS, GoldItem, MinedPanel, Task
from coldrun.tasks.mine.candidates import format_date, make_task_id
from coldrun.tasks.mine.lines import normalise_date
from coldrun.tasks.mine.ticket_file import Ticket, read_tickets
from coldrun.tasks.mine.ticket_log import (
    NamingCommit,
    RepositoryTickets,
    TicketQuery,
    compile_pattern,
    derive_text,
    read_repository_tickets,
)

_ALMOST_ALL = 0.95
_MANY_PER_MESSAGE = 5
_FEW_COMMITS = 20
_PARALLEL_REPOSITORIES = 4
"""Fewer are read sooner than processes start."""
_NAMED = 5
"""How many repositories a note names."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What all repositories say about one ticket; `naming` holds each one's earliest commit."""

    repositories: list[str] = field(default_factory=list)
    naming: list[NamingCommit] = field(default_factory=list)

    def derive_text(self, panel: PanelConfig) -> str:
        """The text of the earliest commit that has any without the ids."""
        pattern = compile_pattern(panel.ticket_pattern or "")
        for commit in sorted(self.naming):
            is_short = panel.query == "subject"
            if text := derive_text(commit.message, pattern, subject_only=is_short):
                return text
        return ""


def mine_ticket_repos(panel: PanelConfig, *, config_dir: Path, scratch: Path) -> MinedPanel:
    """Mine a `ticket-repos` panel; the repositories are read in parallel processes."""
    pattern = _check_pattern(panel.ticket_pattern)
    after = _parse_moment("base", panel.base)
    until = _parse_moment("head", None if panel.head == "HEAD" else panel.head)
    if after is not None and until is not None and until <= after:
        raise PanelError(
            f"the range {panel.base}..{panel.head} is empty: head is not after base; "
            "choose an older base"
        )
    tickets = None
    if panel.tickets:
        ignores_case = bool(compile_pattern(pattern).flags & re.IGNORECASE)
        tickets = read_tickets(config_dir / panel.tickets, ignore_case=ignores_case)
    located = locate_repositories(panel, config_dir=config_dir, scratch=scratch)
    queries = [
        TicketQuery(
            name=name,
            location=str(repository.git_dir),
            pattern=pattern,
            branch=panel.branch,
            wants_text=tickets is None,
            after=after,
            until=until,
        )
        for name, repository in located.items()
    ]
    read = _read_all(queries)
    _check_matches(pattern, read)
    found = _join(read)
    _check_time(panel, read, found)
    if tickets is not None and not tickets.keys() & found.keys():
        raise PanelError(
            f"commits name {counted(len(found), 'ticket')}, none of which is in {panel.tickets}; "
            f"compare its ids with what ticket_pattern {panel.ticket_pattern!r} finds, such as "
            f"{min(found)!r}"
        )
    return _assemble(panel, read, found, tickets)


def locate_repositories(
    panel: PanelConfig, *, config_dir: Path, scratch: Path
) -> dict[str, Repository]:
    """The panel's repositories by name, sorted; URLs are cloned, globs expanded."""
    places: dict[str, str] = {}
    located: dict[str, Repository] = {}
    for source in panel.repos:
        for place in _expand(source, config_dir):
            name = re.split(r"[/\\:]", place.rstrip("/").removesuffix(".git"))[-1]
            if places.get(name) == place:
                continue
            if name in places:
                raise PanelError(
                    f"two repositories are named {name!r}: {places[name]} and {place}; "
                    "names are the answers, so rename one of the folders"
                )
            places[name] = place
            path = ensure_clone(place, scratch) if is_url(place) else Path(place)
            if not is_url(place) and not _is_root(path):
                raise RepositoryError(f"{place} is not a git repository; `repos` names one each")
            located[name] = Repository.open(path)
    return {name: located[name] for name in sorted(located)}


def _expand(source: str, config_dir: Path) -> list[str]:
    if is_url(source):
        return [source]
    place = os.path.normpath(config_dir / Path(source).expanduser())
    if not glob.has_magic(source):
        return [place]
    # The folder's own name is not a pattern; Path.glob takes neither absolute patterns nor "..".
    pattern = os.path.join(glob.escape(str(config_dir)), Path(source).expanduser())  # noqa: PTH118
    found = glob.glob(os.path.normpath(pattern), include_hidden=True)  # noqa: PTH207
    # A folder may be called .github; what lies in .git is a repository's own.
    matches = [path for match in sorted(found) if ".git" not in (path := Path(match)).parts]
    places = [str(path) for path in matches if path.is_dir() and _is_root(path)]
    if not places:
        raise PanelError(f"repos: no repository matches {source!r} (from {config_dir})")
    return places


def _is_root(path: Path) -> bool:
    is_bare = (path / "HEAD").is_file() and (path / "objects").is_dir()
    return is_bare or (path / ".git").exists()


def _check_pattern(pattern: str | None) -> str:
    if not pattern:
        raise PanelError(r"`ticket_pattern` is missing; for example '[A-Z]+-\d+' or '#\d+'")
    try:
        matches_nothing = compile_pattern(pattern).fullmatch("") is not None
    except re.error as error:
        raise PanelError(
            f"ticket_pattern {pattern!r} is not a regular expression: {error}"
        ) from None
    if matches_nothing:
        raise PanelError(f"ticket_pattern {pattern!r} matches the empty text; make it say more")
    return pattern


def _parse_moment(key: str, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return int(datetime.fromisoformat(normalise_date(value)).timestamp())
    except ValueError:
        raise PanelError(
            f"{key} = {value!r}: a ticket-repos panel is frozen at a date, because its "
            "repositories share no commit; write one such as 2026-01-31"
        ) from None


def _read_all(queries: Sequence[TicketQuery]) -> list[RepositoryTickets]:
    workers = min(os.cpu_count() or 1, len(queries))
    if workers > 1 and len(queries) >= _PARALLEL_REPOSITORIES:
        # Spawned, not forked: the caller may run threads.
        context = multiprocessing.get_context("spawn")
        with (
            suppress(BrokenProcessPool),  # Where no process can be started, one has to do.
            ProcessPoolExecutor(max_workers=workers, mp_context=context) as pool,
        ):
            return list(pool.map(read_repository_tickets, queries))
    return [read_repository_tickets(query) for query in queries]


def _check_matches(pattern: str, read: Sequence[RepositoryTickets]) -> None:
    """Refuse a pattern that finds no ticket, or something that can be no ticket.

    A team whose every commit names a ticket is fine. What is not: one id in nearly all commits;
    or matches in nearly all commits that are many each, or are the whole subject.
    """
    commits = sum(one.commits for one in read)
    matching = sum(one.matching for one in read)
    if matching == 0:
        raise PanelError(
            f"ticket_pattern {pattern!r} matches none of {counted(commits, 'commit')} in "
            f"{_repositories(len(read))}; look at how their messages name tickets"
        )
    counts: Counter[str] = Counter()
    for one in read:
        counts.update(one.counts)
    reason = None
    for ticket, count in counts.most_common(1):
        if commits >= _FEW_COMMITS and count > _ALMOST_ALL * commits:
            reason = f"{ticket!r} is named by {count} of {commits} commits"
    if matching > _ALMOST_ALL * commits:
        each = sum(one.matches for one in read) / matching
        covering = sum(one.covering for one in read)
        if each > _MANY_PER_MESSAGE:
            reason = f"{matching} of {commits} commits match, {each:.1f} times each"
        elif covering > _ALMOST_ALL * matching:
            reason = f"{covering} of {commits} subjects match from end to end"
    if reason:
        raise PanelError(f"ticket_pattern {pattern!r} matches nearly everything: {reason}")


def _repositories(number: int) -> str:
    return counted(number, "repository", "repositories")


def _check_time(
    panel: PanelConfig, read: Sequence[RepositoryTickets], found: Mapping[str, _Found]
) -> None:
    if not any(one.base for one in read):
        moment = f"base {panel.base}" if panel.base else f"head {panel.head}"
        raise PanelError(
            f"no commit up to {moment} in {_repositories(len(read))}; choose a later date"
        )
    if not found:
        begun = len(frozenset[str]().union(*(one.begun for one in read)))
        raise PanelError(
            f"commits name no ticket after base {panel.base} that was not begun before it "
            f"({begun} were named by then); choose an older base"
        )


def _join(read: Sequence[RepositoryTickets]) -> dict[str, _Found]:
    begun = frozenset[str]().union(*(one.begun for one in read))
    found: dict[str, _Found] = {}
    for one in read:  # In the order of their names.
        for key, naming in one.naming.items():
            if key not in begun:
                ticket = found.setdefault(key, _Found())
                ticket.repositories.append(one.name)
                ticket.naming.append(naming)
    return found


def _assemble(
    panel: PanelConfig,
    read: Sequence[RepositoryTickets],
    found: Mapping[str, _Found],
    tickets: Mapping[str, Ticket] | None,
) -> MinedPanel:
    existing = {one.name: one.base for one in read if one.base is not None}
    begun = frozenset[str]().union(*(one.begun for one in read))
    keys = [key for key in (found if tickets is None else tickets) if key not in begun]
    drops = dict.fromkeys(DROP_REASONS, 0)
    decided: list[tuple[str, Task | str]] = []
    for key in keys:
        ticket = None if tickets is None else tickets[key]
        decided.append((key, _decide(panel, ticket, found.get(key), existing)))
    tasks: dict[str, Task] = {}
    for _, outcome in sorted(decided, key=_newest_first):
        reason = outcome if isinstance(outcome, str) else None
        if not isinstance(outcome, str) and outcome.id in tasks:
            reason = "duplicate"
        if reason is not None:
            drops[reason] += 1
        elif not isinstance(outcome, str):
            tasks[outcome.id] = outcome
    return MinedPanel(
        tasks=tuple(tasks.values()),
        drops=drops,
        candidates=len(keys),
        base=None,
        head=None,
        corpora=existing,
        items=tuple(sorted(existing)),
        change_counts={one.name: one.commits_before_base for one in read if one.name in existing},
        notes=tuple(_notes(panel, read, found, tickets, begun)),
    )


def _decide(
    panel: PanelConfig,
    ticket: Ticket | None,
    found: _Found | None,
    existing: Mapping[str, object],
) -> Task | str:
    found = found or _Found()
    query = found.derive_text(panel) if ticket is None else ticket.text
    if not query:
        return "empty_query"
    named = found.repositories
    if not named and not panel.keep_unnamed_tickets:
        return "no_file"
    gold = [name for name in named if name in existing]
    if named and not gold:
        return "created_after_base"
    if panel.max_gold is not None and len(gold) > panel.max_gold:
        return "too_many_files"
    first = format_date(min(found.naming).committed) if found.naming else None
    return Task(
        id=make_task_id(query),
        query=query,
        answer=panel.answer_kind,
        gold=tuple(GoldItem(item=name) for name in gold),
        date=(ticket.created if ticket is not None else None) or first,
        strata={
            "text": "derived" if ticket is None else "given",
            "repositories": {0: "none", 1: "single"}.get(len(gold), "multi"),
        },
    )


def _newest_first(decided: tuple[str, Task | str]) -> tuple[float, str]:
    key, outcome = decided
    date = None if isinstance(outcome, str) else outcome.date
    return (-datetime.fromisoformat(date).timestamp() if date else 0.0, key)


def _notes(
    panel: PanelConfig,
    read: Sequence[RepositoryTickets],
    found: Mapping[str, _Found],
    tickets: Mapping[str, Ticket] | None,
    begun: frozenset[str],
) -> list[str]:
    notes = []
    empty = [one.name for one in read if one.is_empty]
    if empty:
        more = f" and {len(empty) - _NAMED} more" if len(empty) > _NAMED else ""
        notes.append(
            f"{_repositories(len(empty))} without a commit cannot be an answer and "
            f"{noun(len(empty), 'is', 'are')} left out: {', '.join(empty[:_NAMED])}{more}"
        )
    if panel.base is None:
        notes.append(
            "the searched trees are those of head and hold the work on the tickets; "
            "set `base` to a date to freeze them before it"
        )
    if tickets is None:
        notes.append("the text of the tasks is derived from commits of the gold repositories")
    else:
        unknown = len(found.keys() - tickets.keys())
        if unknown:
            what = counted(unknown, "ticket")
            notes.append(f"commits name {what} that the tickets file does not have")
    if begun:
        are = noun(len(begun), "is", "are")
        notes.append(f"{counted(len(begun), 'ticket')} named before base {are} left out")
    return notes
