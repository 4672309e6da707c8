"""Candidates → frozen panel: split, distribution, sample, hash, lock. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coldrun.tasks.config import Config
from coldrun.tasks.config.ablation import find_shared_component
from coldrun.tasks.freeze.distribution import Distribution, describe_distribution, warn_of_size
from coldrun.tasks.freeze.lock import LOCK_SCHEMA, locked_settings, panel_to_bytes
from coldrun.tasks.freeze.parts import Part, Parts, draw_parts, mark_parts
from coldrun.tasks.freeze.sample import sample_tasks, split_tasks
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.lib.records import Dropped, MinedPanel, Revision, Task
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.nulls import NullGround, measure_nulls

MINER_VERSION = "2"
"""Raised when mining or sampling gives other tasks for the same history and settings."""

MOST_CHANGED_KEPT = 200
"""How many of the most changed items the lock keeps for the `most-changed` null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullLine:
    """One null at the primary measure, over all dev tasks and by part: means in [0, 1]."""

    name: str
    before: float
    after: Mapping[Part, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenResult:
    """What freezing made, and what it has to tell. Figures are of the dev part alone.

    `sealed` are all tasks of the sealed part; `sealed_panel` are the canonical bytes of those that
    an opening asks (drawn as the primary part of dev is), None without a split. `parts` are those
    of the panel, the primary one, which `sampled` repeats, first.
    """

    panel: bytes
    lock: dict[str, Any]
    sealed: tuple[Task, ...]
    sealed_panel: bytes | None
    parts: Parts
    sampled: tuple[Task, ...]
    dev_tasks: int
    drops: Mapping[str, int]
    dropped: tuple[Dropped, ...]
    candidates: int
    before: Distribution
    after: Distribution
    nulls: tuple[NullLine, ...]
    warnings: tuple[str, ...]


def freeze_panel(config: Config, mined: MinedPanel) -> FrozenResult:
    """Split, describe, sample, hash.

    Of the sealed part nothing is told but how many tasks it has. What is said of all tasks is
    counts alone (candidates, drops, solvable): the denominators.
    """
    if not mined.tasks:
        drops = ", ".join(f"{number} {reason}" for reason, number in mined.drops.items() if number)
        why = drops or "the range is empty"
        raise PanelError(
            f"of {counted(mined.candidates, 'candidate')} none is solvable ({why}); "
            "choose an older base, a longer range, or fewer exclusions"
        )
    dev, sealed = split_tasks(mined.tasks, config.split)
    parts = draw_parts(config, dev)
    sampled = parts[config.primary_part]
    before, after = describe_distribution(dev), describe_distribution(sampled)
    panel = panel_to_bytes(mark_parts(parts))
    sealed_panel = draw_sealed(config, mined.tasks)
    sealed_asked = 0 if sealed_panel is None else sealed_panel.count(b"\n")
    ground = NullGround(
        corpus_items=_count_items(mined, dev),
        change_counts=_most_changed(mined.change_counts),
    )
    nulls = _null_lines(config, dev, parts, ground)
    lock = {
        "schema": LOCK_SCHEMA,
        "panel": {
            "digest": digest_bytes(panel),
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
            "primary": config.primary_part,
            "parts": {
                name: {"tasks": len(tasks), "digest": digest_bytes(panel_to_bytes(tasks))}
                for name, tasks in parts.items()
            },
            "population": len(dev),
            "nulls": {line.name: line.before for line in nulls},
        },
        "settings": locked_settings(config),
        "guards": {"max_infra_share": config.run.max_infra_share},
        "sealed": _describe_sealed(config, sealed_panel, pool=len(sealed)),
        "holdout": {"head": None, "count": 0, "demoted": None},
        "history": [],
    }
    return FrozenResult(
        panel=panel,
        lock=lock,
        sealed=sealed,
        sealed_panel=sealed_panel,
        parts=parts,
        sampled=sampled,
        dev_tasks=len(dev),
        drops=mined.drops,
        dropped=tuple(
            each
            for each in mined.dropped
            if each.reason != "duplicate" or not sealed  # what it repeats may be sealed
        ),
        candidates=mined.candidates,
        before=before,
        after=after,
        nulls=nulls,
        warnings=tuple(
            dict.fromkeys(
                [
                    *before.warnings,
                    *after.warnings,
                    *([LARGEST_FIRST] if config.sample_rule == "largest-first" else ()),
                    *warn_of_size(len(sampled)),
                    *(f"sealed part: {text}" for text in warn_of_size(sealed_asked) if sealed),
                    *mined.notes,
                    *_warn_of_oracles(config),
                ]
            )
        ),
    )


LARGEST_FIRST = (
    '[sample] rule = "largest-first" takes the tasks with the most gold, which favours a constant '
    'answer; use "gold-capped" for rankings and "answer-shape" for sets'
)


def _warn_of_oracles(config: Config) -> tuple[str, ...]:
    return tuple(
        f"gold_from = {name!r} is no arm of this configuration and no arm's component: no arm is "
        "refused a verdict for it"
        for name in config.panel.gold_from
        if not any(find_shared_component(arm.name, arm.component, (name,)) for arm in config.arms)
    )


def draw_sealed(config: Config, tasks: Sequence[Task]) -> bytes | None:
    """The canonical bytes of the sealed tasks that an opening asks; None without a split.

    The sealed part is sampled as the primary part of dev is, so that both figures are of one kind;
    what is not drawn stays unread too.
    """
    sealed = split_tasks(tasks, config.split)[1]
    if not sealed:
        return None
    rule, size = config.sample_rule, config.sample.size
    if rule == "all" and size is not None:
        size = max(size, len(sealed))
    elif config.primary_part == "random" and rule != "all":
        rule, size = "random", size if rule == "random" else config.random_size
    return panel_to_bytes(sample_tasks(sealed, rule=rule, size=size, seed=config.sample.seed))


def _describe_sealed(
    config: Config, sealed_panel: bytes | None, *, pool: int
) -> dict[str, Any] | None:
    if sealed_panel is None or config.split is None:
        return None
    return {
        "rule": config.split.model_dump(mode="json", exclude_none=True),
        "tasks": pool,
        "count": sealed_panel.count(b"\n"),
        "digest": digest_bytes(sealed_panel),
        "miner": MINER_VERSION,
    }


def _count_items(mined: MinedPanel, dev: Sequence[Task]) -> int:
    if mined.corpora and mined.items:
        return len(mined.items)
    return len({item for task in dev for item in task.shape})


def _null_lines(
    config: Config, dev: Sequence[Task], parts: Parts, ground: NullGround
) -> tuple[NullLine, ...]:
    primary = parse_measure(config.primary)

    def means(tasks: Sequence[Task]) -> dict[str, float]:
        scores = measure_nulls(tasks, primary, primary=primary, k=config.k, ground=ground)
        return {name: float(each.mean()) for name, each in scores.items()}

    before = means(dev)
    after = {name: means(tasks) for name, tasks in parts.items() if name != "population"}
    return tuple(
        NullLine(name=null, before=mean, after={part: after[part][null] for part in after})
        for null, mean in before.items()
    )


def _most_changed(counts: Mapping[str, int]) -> dict[str, int]:
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return dict(ranked[:MOST_CHANGED_KEPT])


def _revision(revision: Revision | None) -> dict[str, str] | None:
    return None if revision is None else {"commit": revision.commit, "tree": revision.tree}
