"""Candidates → frozen panel: split, distribution, sample, hash, lock. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.analyse.measures import parse_measure
from tasks.analyse.run_analysis import NullGround, measure_nulls
from tasks.config import Config
from tasks.errors import PanelError
from tasks.freeze.distribution import Distribution, describe_distribution
from tasks.freeze.lock import LOCK_SCHEMA, locked_settings
from tasks.freeze.panel import panel_digest, panel_to_bytes
from tasks.freeze.sample import sample_tasks
from tasks.freeze.split import split_tasks
from tasks.records import MinedPanel, Revision, Task

MINER_VERSION = "1"
"""Raised when mining or sampling gives other tasks for the same history and settings."""

MOST_CHANGED_KEPT = 200
"""How many of the most changed items the lock keeps for the `most-changed` null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullLine:
    """One null at the primary measure, before sampling and in the sample: means in [0, 1]."""

    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenResult:
    """What freezing made, and what it has to tell. Figures are of the dev part alone."""

    panel: bytes
    lock: dict[str, Any]
    sealed: tuple[Task, ...]
    sampled: tuple[Task, ...]
    dev_tasks: int
    drops: Mapping[str, int]
    candidates: int
    before: Distribution
    after: Distribution
    nulls: tuple[NullLine, ...]
    warnings: tuple[str, ...]


def freeze_panel(config: Config, mined: MinedPanel) -> FrozenResult:
    """Split, describe, sample, hash.

    Raises:
        PanelError: Nothing is solvable, or the sealed part would be all of it.
    """
    if not mined.tasks:
        drops = ", ".join(f"{number} {reason}" for reason, number in mined.drops.items() if number)
        why = drops or "the range is empty"
        raise PanelError(
            f"none of the {mined.candidates} candidates is solvable ({why}); "
            "choose an older base, a longer range, or fewer exclusions"
        )
    dev, sealed = split_tasks(mined.tasks, config.split)
    sampled = sample_tasks(
        dev, rule=config.sample_rule, size=config.sample.size, seed=config.sample.seed
    )
    before, after = describe_distribution(dev), describe_distribution(sampled)
    panel = panel_to_bytes(sampled)
    ground = NullGround(
        corpus_items=len(mined.items) or len({item for task in mined.tasks for item in task.shape}),
        change_counts=_most_changed(mined.change_counts),
    )
    lock = {
        "schema": LOCK_SCHEMA,
        "panel": {
            "digest": panel_digest(panel),
            "tasks": len(sampled),
            "kind": config.panel.kind,
            "base": _revision(mined.base),
            "head": _revision(mined.head),
            "candidates": mined.candidates,
            "solvable": len(mined.tasks),
            "drops": dict(mined.drops),
            "miner": MINER_VERSION,
            "corpus": {
                "items": ground.corpus_items,
                "most_changed": [list(entry) for entry in ground.change_counts.items()],
                "trees": {name: _revision(rev) for name, rev in sorted(mined.corpora.items())},
            },
            "notes": list(mined.notes),
        },
        "settings": locked_settings(config),
        "sealed": None,
        "history": [],
    }
    return FrozenResult(
        panel=panel,
        lock=lock,
        sealed=sealed,
        sampled=sampled,
        dev_tasks=len(dev),
        drops=mined.drops,
        candidates=mined.candidates,
        before=before,
        after=after,
        nulls=_null_lines(config, dev, sampled, ground),
        warnings=tuple(dict.fromkeys([*before.warnings, *after.warnings, *mined.notes])),
    )


def _null_lines(
    config: Config, dev: Sequence[Task], sampled: Sequence[Task], ground: NullGround
) -> tuple[NullLine, ...]:
    primary = parse_measure(config.primary)
    before = measure_nulls(dev, primary, k=config.k, ground=ground)
    after = measure_nulls(sampled, primary, k=config.k, ground=ground)
    return tuple(
        NullLine(name=name, before=float(scores.mean()), after=float(after[name].mean()))
        for name, scores in before.items()
    )


def _most_changed(counts: Mapping[str, int]) -> dict[str, int]:
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return dict(ranked[:MOST_CHANGED_KEPT])


def _revision(revision: Revision | None) -> dict[str, str] | None:
    return None if revision is None else {"commit": revision.commit, "tree": revision.tree}
