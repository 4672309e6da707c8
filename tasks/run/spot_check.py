"""Replays are checked: a random twentieth is executed all the same, and must agree."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.execute import Ask, PlannedArm, Run, Shard, execute_shard

SHARE = 20
FEWEST = 3


def check_replays(
    run: Run, arms: Sequence[PlannedArm], found: Mapping[str, Capture]
) -> tuple[dict[str, Capture], list[str]]:
    """Execute some of the answers that would be replayed, and store what came.

    Returns:
        The captures that may be replayed, and by name the arms of which some did not agree, which
        are executed whole.
    """
    asked = [(arm, asks) for arm in arms if (asks := _choose(arm, found, run.run_id))]
    if not asked:
        return dict(found), []
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:
        shards = [Shard(arm=arm, number=1, of=1, asks=tuple(asks)) for arm, asks in asked]
        list(pool.map(lambda shard: execute_shard(run, shard), shards))
    kept, doubted = dict(found), []
    for arm, asks in asked:
        for ask in asks:
            kept.pop(ask.key, None)
        if not all(_agrees(arm, run.done.get(ask.key), found[ask.key]) for ask in asks):
            doubted.append(arm.name)
            for ask in arm.asks:
                kept.pop(ask.key, None)
    return kept, doubted


def _choose(arm: PlannedArm, found: Mapping[str, Capture], run_id: str) -> list[Ask]:
    """At least three of an arm's asks; of a stateful arm the first ones, which decide the rest."""
    asks = [ask for ask in arm.asks if ask.key in found]
    number = min(len(asks), max(FEWEST, -(-len(asks) // SHARE)))
    if arm.is_ordered:
        return [ask for ask in arm.asks if ask.trial == 0][:number] if asks else []
    return random.Random(f"{run_id} {arm.name}").sample(asks, number)  # noqa: S311


def _agrees(arm: PlannedArm, now: Capture | None, before: Capture) -> bool:
    if now is None or now.is_infra:
        return False
    return arm.read_items(now) == arm.read_items(before)
