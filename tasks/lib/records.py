"""The records that pass between stages: plain frozen values, no behaviour beyond derivation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from coldrun.tasks.lib.table_record import Column, Int32, LargeText

AnswerKind = Literal["ranking", "set"]
Role = Literal["candidate", "control", "floor", "null"]
Provenance = Literal["mined", "imported", "human"]

NULL_NAMES = ("empty", "everything", "constant", "most-changed", "random", "permuted")
"""The null strategies, in the order in which reports show them."""

JunkReason = Literal["version_bump", "dependency_update", "revert", "few_words"]
JUNK_REASONS: tuple[JunkReason, ...] = get_args(JunkReason)
"""What asks nothing; a panel may keep it."""

DROP_REASONS = (
    "merge",
    "bot_author",
    "empty_query",
    *JUNK_REASONS,
    "no_file",
    "only_excluded",
    "created_after_base",
    "too_many_files",
    "duplicate",
)
"""Why a candidate leaves the panel; the first reason that holds, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldItem:
    """One right item of a task. `grade` is a relevance > 0."""

    item: str
    grade: float = 1.0
    provenance: Provenance = "mined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One question of a panel with its gold answer.

    `date` is ISO 8601 in UTC (committer time) or None. `base` is the commit whose tree is the
    corpus of this task alone, None when the panel has one base. `strata` maps a stratum's name
    to the value this task has in it, e.g. {"names_gold": "no", "files": "single"}. `parts` names
    the parts of the panel that it was drawn into, where there are several.
    """

    id: str
    query: str
    answer: AnswerKind
    gold: tuple[GoldItem, ...]
    date: str | None = None
    base: str | None = None
    strata: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    @property
    def gold_grades(self) -> dict[str, float]:
        """Gold items with their grades, in panel order."""
        return {gold.item: gold.grade for gold in self.gold}

    @property
    def shape(self) -> tuple[str, ...]:
        """The sorted, de-duplicated gold items: the task's answer shape."""
        return tuple(sorted({gold.item for gold in self.gold}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A commit and its tree, both full-length hexadecimal object names."""

    commit: str
    tree: str


class Dropped(NamedTuple):
    """A candidate that left: its commit, the reason and the start of its message."""

    commit: str
    reason: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedPanel:
    """Everything mining found, before split and sampling.

    `tasks` are the solvable candidates, newest first. `drops` counts the others by reason;
    `candidates == len(tasks) + sum(drops.values())` always. `corpora` maps a corpus name to its
    base revision ("." for the only corpus of a `commit-files` panel). `change_counts` gives, for
    each item, how many commits before base changed it (the `most-changed` null reads it). `dropped`
    names the candidates that left, newest first.
    """

    tasks: tuple[Task, ...]
    drops: Mapping[str, int]
    candidates: int
    base: Revision | None
    head: Revision | None
    corpora: Mapping[str, Revision] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    change_counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an arm sees of a task: never gold. `base` names the tree when it differs by task."""

    id: str
    query: str
    answer: AnswerKind
    k: int
    seed: int
    base: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at one question. Token counts are None when the arm did not report them.

    `was_replaced`: it belongs to a failed answer that `--resume` asked again; it was spent, and has
    no part in the answer.
    """

    number: Int32 = 1
    status: Literal["ok", "infra"] = "ok"
    reason: str | None = None
    seconds: Annotated[float, Column("attempt_seconds")] = 0.0
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    was_replaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentEvent:
    """One use of a component (a tool, a retriever) while answering."""

    name: str
    position: Int32
    arguments_digest: str | None = None
    returned_bytes: int | None = None
    returned_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a session returned for one question, unparsed.

    `raw` is the answer as the arm gave it (JSON text); it is parsed at scoring time only.
    `status` is `infra` when the tool itself failed; `reason` then says how, and `stderr` holds an
    excerpt. `seconds` is answer time alone, without start-up or indexing.
    """

    status: Literal["answered", "abstained", "infra"]
    raw: LargeText | None = None
    reason: str | None = None
    stderr: str | None = None
    seconds: Annotated[float, Column("answer_seconds")] = 0.0
    stop_reason: str | None = None
    degraded: tuple[str, ...] = ()
    trajectory: LargeText | None = None
    attempts: tuple[Attempt, ...] = ()
    events: tuple[ComponentEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart:
    """How a session came up. Seconds are wall time; identity fields are what the arm reported."""

    startup_seconds: float = 0.0
    indexing_seconds: float = 0.0
    corpus_dir: str | None = None
    nonce: str | None = None
    name: Annotated[str | None, Column("reported_name")] = None
    commit: Annotated[str | None, Column("reported_commit")] = None
    loaded_from: str | None = None
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """What a session left behind.

    `invalid` lists reasons that make the run invalid (identity, changed corpus files);
    `warnings` lists the rest (new files). `log` is the tail of its stderr.
    """

    invalid: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    log: LargeText | None = None
    restarts: Int32 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """One session of a run: how it came up, and how it ended, None while it lives."""

    run_id: str
    session_id: str
    arm: str
    trial: Int32
    start: SessionStart
    end: SessionEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The product at one commit, checked out, verified and set up in `directory`."""

    repo: str
    directory: Path
    commit: str
    tree: str
    is_dirty: bool = False
