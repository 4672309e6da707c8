"""The tables of a configuration and what each may say."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from coldrun.tasks.config.ablation import check_ablations
from coldrun.tasks.config.arm_config import AnyArm, ArmConfig, Names, Section, find_kind
from coldrun.tasks.lib.machine.sandbox import SandboxChoice
from coldrun.tasks.lib.records import JUNK_REASONS, NULL_NAMES, AnswerKind, JunkReason, Role

BUILTIN_ROLES: dict[str, Role] = {"bm25": "control", "history": "control", "grep": "floor"}
"""The arms that come with coldrun, which are asked where none is declared."""

Price = Field(default=None, ge=0, allow_inf_nan=False)


class ModelPrices(Section):
    """What one model costs by kind of token, per million; None where the snapshot does not say."""

    input: float | None = Price
    output: float | None = Price
    cache_read: float | None = Price
    cache_write: float | None = Price

    def by_kind(self) -> dict[str, float]:
        """The prices that are known."""
        return {kind: price for kind, price in self if price is not None}


class PriceSnapshot(Section):
    """Prices as they were on one day, from one named source."""

    date: dt.date
    source: str = Field(min_length=1)
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    models: dict[str, ModelPrices]

    @field_validator("date", mode="before")
    @classmethod
    def _is_written_as_a_date(cls, value: Any) -> Any:
        if isinstance(value, int | float):
            # pydantic takes ValueError alone, and would read a number as seconds since 1970
            raise ValueError(f"{value!r} is no date; write it as 2026-11-30")  # noqa: TRY004
        return value


class PricesConfig(Section):
    """`[prices]`: the file of a snapshot.

    What the file held, and the SHA-256 of its bytes, are filled in when it is read, so that a run
    keeps the prices it was reported with. They decide no answer: no key and no lock holds them.
    """

    file: str
    digest: str | None = None
    snapshot: PriceSnapshot | None = None


_TEXTS = ("md", "rst", "txt", "xml")

DEFAULT_EXCLUDE_GOLD = (
    "CHANGES*",
    "CHANGELOG*",
    "HISTORY*",
    "NEWS*",
    "RELEASE_NOTES*",
    *(f"[Cc]hanges.{ending}" for ending in _TEXTS),
    *(f"[Cc]hange[Ll]og.{ending}" for ending in (*_TEXTS, "d")),
    *(f"[Hh]istory.{ending}" for ending in _TEXTS),
    *(f"[Nn]ews.{ending}" for ending in _TEXTS),
    "[Cc]hange[Ll]og",
    "[Cc]hangelogs",
    "[Rr]elease[-_]notes*",
    "[Ww]hats[-_]new*",
    "[Ww]hats[Nn]ew*",
    "newsfragments",
    "*.lock",
    "*.lockfile",
    "bun.lockb",
    "go.sum",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pnpm-lock.yaml",
    "*.min.css",
    "*.min.js",
    "*.mo",
    "*.pb.go",
    "*_pb2*.py",
    "*_pb2.pyi",
    ".github/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    ".travis.yml",
    "azure-pipelines*.yml",
    ".pre-commit-config.yaml",
    ".readthedocs.y*ml",
    ".git-blame-ignore-revs",
)
"""Files that change with everything or that no person writes: changelogs and news fragments, lock
files, generated files and CI (gitignore patterns)."""


class PanelConfig(Section):
    """`[panel]`: where the tasks come from."""

    kind: Literal["commit-files", "ticket-repos", "jsonl"]
    repo: str | None = None
    base: str | None = None
    head: str = "HEAD"
    last: int | None = Field(default=None, ge=1)  # with base = "parent": the newest commits
    unit: Literal["commit", "merge"] = "commit"
    query: Literal["message", "subject"] = "message"
    answer: AnswerKind | None = None
    exclude_gold: tuple[str, ...] = DEFAULT_EXCLUDE_GOLD
    max_gold: int | None = Field(default=20, ge=1)
    drop: tuple[JunkReason, ...] = JUNK_REASONS
    duplicates: Literal["union", "newest", "drop"] = "union"
    renames: Literal["follow", "ignore"] = "follow"
    # jsonl
    file: str | None = None
    gold_from: Names = ()
    # ticket-repos
    repos: tuple[str, ...] = ()
    ticket_pattern: str | None = None
    tickets: str | None = None
    branch: str | None = None
    keep_unnamed_tickets: bool = False
    # contamination: what this panel has been used for, by date
    used_for: tuple[PanelUse, ...] = ()

    @property
    def answer_kind(self) -> AnswerKind:
        """The kind of answer the tasks expect."""
        return self.answer or ("set" if self.kind == "ticket-repos" else "ranking")

    @model_validator(mode="after")
    def _needs_its_source(self) -> PanelConfig:
        if self.kind == "commit-files" and (self.repo is None or self.base is None):
            raise ValueError('kind = "commit-files" needs `repo` and `base`')
        if self.last is not None and self.base != "parent":
            raise ValueError('`last` goes with base = "parent"; otherwise base ends the range')
        if self.kind == "jsonl" and self.file is None:
            raise ValueError('kind = "jsonl" needs `file`, the path of the tasks')
        if self.kind == "ticket-repos" and not self.repos:
            raise ValueError('kind = "ticket-repos" needs `repos`, a list of paths, URLs or globs')
        return self


class PanelUse(Section):
    """One line of a panel's contamination ledger."""

    use: Literal["development", "verification", "untouched"]
    since: dt.date
    note: str = ""


class SampleConfig(Section):
    """`[sample]`: which of the solvable tasks are asked."""

    rule: (
        Literal["gold-capped", "answer-shape", "all", "random", "newest", "largest-first"] | None
    ) = None
    size: int | None = Field(default=None, ge=1)
    random: int | None = Field(default=None, ge=0)
    primary: Literal["balanced", "random"] | None = None
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _has_its_primary_part(self) -> SampleConfig:
        is_whole = self.rule in ("all", "random")
        if is_whole and (self.random is not None or self.primary == "balanced"):
            raise ValueError(
                f'rule = "{self.rule}" makes the whole panel the random part; leave `random` out, '
                "and `primary`"
            )
        if self.primary == "random" and self.random == 0:
            raise ValueError('primary = "random" needs a random part; give `random` a number')
        return self


class SplitConfig(Section):
    """`[split]`: which tasks are sealed; left out, none is."""

    sealed_fraction: float | None = Field(default=None, gt=0, lt=1)
    sealed_after: dt.date | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> SplitConfig:
        if (self.sealed_fraction is None) == (self.sealed_after is None):
            raise ValueError("[split] needs either `sealed_fraction` or `sealed_after`")
        return self


class HoldoutConfig(Section):
    """`[holdout]`: when the sealed part may be opened, and what comes back."""

    openings: int = Field(default=1, ge=0)
    when: str = "any event"
    aggregates: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()


class MeasureConfig(Section):
    """`[measure]`: what is measured, and how much better counts as better.

    `cluster` names the stratum whose tasks are not independent, such as their repository.
    """

    primary: str | None = None
    also: tuple[str, ...] | None = None
    margin_tasks: float = Field(default=1, ge=0)
    minimum_seconds_per_answer: float = Field(default=0.0, ge=0)
    cluster: str | None = None

    @model_serializer(mode="wrap")
    def _leave_out_what_is_not_said(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        return {key: value for key, value in values.items() if key != "cluster" or value}


class BarConfig(Section):
    """`[[bar]]`: a threshold registered before the run."""

    arm: str
    measure: str
    at_least: float | None = None
    against: str | None = None
    margin_tasks: float = 0
    rule: Literal["point", "lower"] = "point"

    @model_validator(mode="after")
    def _one_reference(self) -> BarConfig:
        if (self.at_least is None) == (self.against is None):
            raise ValueError("[[bar]] needs either `at_least` or `against`")
        return self


class ProductConfig(Section):
    """`[product]`: the code under test."""

    repo: str
    commit: str = "HEAD"
    setup: tuple[str, ...] = ()
    setup_files: tuple[str, ...] = ()
    setup_timeout_seconds: float = Field(default=1800, gt=0)
    setup_env: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_setup_key(cls, values: Any) -> Any:
        """`setup_key` let commits share one set-up; runs from before still name it."""
        if isinstance(values, dict):
            return {name: value for name, value in values.items() if name != "setup_key"}
        return values


class RunConfig(Section):
    """`[run]`: how a run executes."""

    concurrency: int = Field(default=2, ge=1, le=256)
    max_infra_share: float = Field(default=0.05, ge=0, le=1)
    runner: Literal["threads", "processes"] = "threads"
    sandbox: SandboxChoice = None


class LimitsConfig(Section):
    """`[limits]`: what a session may use."""

    memory_mb: int | None = Field(default=None, ge=16)
    processes: int | None = Field(default=None, ge=4)
    open_files: int | None = Field(default=None, ge=32)
    disk_mb: int | None = Field(default=None, ge=1)


class Config(Section):
    """One evaluation. Paths in it are relative to the file's folder."""

    panel: PanelConfig
    sample: SampleConfig = SampleConfig()
    split: SplitConfig | None = None
    holdout: HoldoutConfig | None = None
    measure: MeasureConfig = MeasureConfig()
    bar: tuple[BarConfig, ...] = ()
    product: ProductConfig | None = None
    arm: tuple[AnyArm, ...] = ()
    run: RunConfig = RunConfig()
    limits: LimitsConfig = LimitsConfig()
    prices: PricesConfig | None = None

    @field_validator("arm")
    @classmethod
    def _names_are_unique(cls, arms: tuple[ArmConfig, ...]) -> tuple[ArmConfig, ...]:
        names = [arm.name for arm in arms]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"two arms are named {repeated[0]!r}; every arm needs its own name")
        taken = sorted(set(names) & set(NULL_NAMES))
        if taken:
            raise ValueError(f"{taken[0]!r} is the name of a null strategy; choose another")
        check_ablations(arms)
        return arms

    @property
    def arms(self) -> tuple[ArmConfig, ...]:
        """The declared arms; with none declared, history and bm25 as controls and grep as floor.

        A candidate that may remember the corpus is asked once more without it, as a null.
        """
        arms = self.arm or tuple(
            find_kind(kind).settings(name=kind, role=role, kind=kind)
            for kind, role in BUILTIN_ROLES.items()
        )
        if self.panel.repo is None and self.panel.kind == "jsonl":
            return arms
        knocked_out = (arm for arm in arms if arm.role == "candidate" and arm.may_remember)
        return (*arms, *(arm.without_corpus() for arm in knocked_out))

    @property
    def primary(self) -> str:
        """The primary measure: hit@5 for rankings, exact for sets, unless the file says."""
        return self.measure.primary or ("hit@5" if self.is_ranking else "exact")

    @property
    def measures(self) -> tuple[str, ...]:
        """All measures, the primary first, without repeats."""
        default = ("hit@1", "hit@8", "mrr@8") if self.is_ranking else ("precision", "recall", "f1")
        also = default if self.measure.also is None else self.measure.also
        return tuple(dict.fromkeys((self.primary, *also)))

    @property
    def k(self) -> int:
        """The k of a question: the largest cut-off among the measures; 8 where none has one."""
        cutoffs = [int(text.partition("@")[2]) for text in self.measures if "@" in text]
        return max(cutoffs, default=8)

    @property
    def sample_rule(self) -> str:
        """The sampling rule: by answer shape for sets, gold-capped for rankings, unless said."""
        return self.sample.rule or ("gold-capped" if self.is_ranking else "answer-shape")

    @property
    def primary_part(self) -> Literal["balanced", "random"]:
        """The part that bars, nights, trends and histories use."""
        is_whole = self.sample_rule in ("all", "random")
        return self.sample.primary or ("random" if is_whole else "balanced")

    @property
    def random_size(self) -> int:
        """The size of the random part beside a balanced one: as said, else as large as that where
        all arms are built in and so cost nothing, else 0. With one part alone it is 0."""
        size = self.sample.size or 0
        if self.sample_rule in ("all", "random"):
            return 0
        if self.sample.random is not None:
            return self.sample.random
        is_free = all(arm.kind in BUILTIN_ROLES for arm in self.arms)
        return size if is_free or self.sample.primary == "random" else 0

    @property
    def is_ranking(self) -> bool:
        """Whether the tasks ask for a ranking (else for a set)."""
        return self.panel.answer_kind == "ranking"


PanelConfig.model_rebuild()
