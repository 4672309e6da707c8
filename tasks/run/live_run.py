"""A run by its id: live in this process, or made again from its manifest, which is the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from coldrun.tasks.freeze.lock import FrozenPanel, panel_from_bytes
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.errors import InvalidRunError, UsageError
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.run.capture import CaptureStore, open_store
from coldrun.tasks.run.execute import PlannedArm, Run, Shard, execute_shard
from coldrun.tasks.run.manifest import (
    Manifest,
    manifest_from_values,
    point_from_values,
)
from coldrun.tasks.run.prepare import Evaluation, Setting, locate_corpus, plan_arms
from coldrun.tasks.run.run_lifecycle import RunRequest, StartedRun, land_run, start_run

_live: dict[str, StartedRun] = {}
"""The runs that this process has begun and not ended, by id."""


def plan_run(
    evaluation: Evaluation,
    point: dict[str, Any] | None,
    request: Mapping[str, Any],
    warehouse: Path,
) -> str:
    """Start a run, or take up a dead one, and give its id.

    Args:
        evaluation: What is evaluated.
        point: The product, as `check_out` gave it.
        request: The fields of a `RunRequest`, as plain values.
        warehouse: Where results go.
    """
    asked = RunRequest(
        **{
            **request,
            "warehouse": warehouse,
            "always_executed": frozenset(request.get("always_executed", ())),
        }
    )
    started = start_run(
        evaluation, asked, point=None if point is None else point_from_values(point)
    )
    return keep_live(started)


def keep_live(started: StartedRun) -> str:
    """Let the stages of this process find a run by its id; the watch can stop it from here on."""
    _live[started.run_id] = started
    watch = current_watch()
    started.run.on_progress = watch.on_progress
    watch.begin(started.run_id, started.run.stop)
    return started.run_id


def list_shards(warehouse: Path, run_id: str) -> range:
    """The numbers of the shards that the run's last plan has."""
    return range(1, len(open_store(warehouse, run_id).read_shards()) + 1)


def ask_shard(warehouse: Path, run_id: str, number: int, scratch: Path) -> int:
    """Ask the questions of one shard; gives the number of answers stored."""
    started = _live.get(run_id)
    if started is not None:
        return execute_shard(started.run, started.shards()[number - 1])
    run, shard = _shard_elsewhere(open_store(warehouse, run_id), number, scratch)
    try:
        return execute_shard(run, shard)
    finally:
        run.close()


def land_by_id(warehouse: Path, run_id: str, scratch: Path) -> str:
    """End the sessions of a run and land its answers; gives `finished` or `interrupted`."""
    return land_run(find_run(warehouse, run_id, scratch)).status


def find_run(warehouse: Path, run_id: str, scratch: Path) -> StartedRun:
    """A run that was begun: the live one, or one made from what its planning wrote."""
    return _live.get(run_id) or _attach(warehouse, run_id, scratch)


def end_run(run_id: str, *, is_abandoned: bool = False) -> None:
    """Let go of a live run: its locks, and with `is_abandoned` its sessions too.

    A run that was abandoned before anything was answered leaves nothing behind.
    """
    started = _live.pop(run_id, None)
    if started is None:
        return
    if is_abandoned:
        is_empty = not started.run.done
        started.abandon()
        if is_empty:
            started.store.remove()
    else:
        started.held.close()


def _attach(warehouse: Path, run_id: str, scratch: Path) -> StartedRun:
    store = open_store(warehouse, run_id)
    evaluation, manifest = _read(store, scratch)
    run = Run(
        run_id=run_id,
        store=store,
        seed=evaluation.config.sample.seed,
        arms=_plan_again(evaluation, manifest),
        done=store.read_captures(),
    )
    return StartedRun(
        evaluation=evaluation, manifest=manifest, store=store, run=run, warehouse=warehouse
    )


def _shard_elsewhere(store: CaptureStore, number: int, scratch: Path) -> tuple[Run, Shard]:
    """One shard of a run that another process planned.

    Raises:
        UsageError: The plan has no such shard.
        InvalidRunError: A key comes out differently here than where the run was planned.
    """
    evaluation, manifest = _read(store, scratch)
    planned = store.read_shards()
    if not 0 < number <= len(planned):
        raise UsageError(f"run {manifest.run_id} has {len(planned)} shards, there is no {number}")
    values = planned[number - 1]
    chosen = [arm for arm in evaluation.config.arms if arm.name == values["arm"]]
    config = evaluation.config.model_copy(update={"arm": tuple(chosen)})
    (arm,) = _plan_again(replace(evaluation, config=config), manifest)
    asks = {(ask.trial, ask.question.id): ask for ask in arm.asks}
    shard = Shard(
        arm=arm,
        number=number,
        of=len(planned),
        asks=tuple(asks[trial, task_id] for trial, task_id, _ in values["asks"]),
    )
    for ask, (_, _, key) in zip(shard.asks, values["asks"], strict=True):
        if ask.key != key:
            raise InvalidRunError(
                f"{arm.name}: this worker is not like the process that planned run "
                f"{manifest.run_id}: the key of task {ask.question.id} differs; use the same "
                "source, packages, interpreter and files on both"
            )
    keys = {ask.key for ask in shard.asks}
    done = {key: found for key, found in store.read_captures().items() if key in keys}
    run = Run(
        run_id=manifest.run_id,
        store=store,
        seed=evaluation.config.sample.seed,
        arms=(arm,),
        done=done,
    )
    return run, shard


def _read(store: CaptureStore, scratch: Path) -> tuple[Evaluation, Manifest]:
    values, data = store.read_manifest()
    manifest = manifest_from_values(values)
    if digest_bytes(data) != manifest.panel_digest:
        raise InvalidRunError(
            f"{store.folder / 'panel.jsonl'} is not the panel {manifest.panel_digest} that the run "
            "was started with; restore the file"
        )
    frozen = FrozenPanel(
        name=manifest.name, tasks=panel_from_bytes(data), data=data, lock=manifest.lock
    )
    evaluation = Evaluation(
        config=manifest.config,
        config_path=Path(manifest.config_path),
        frozen=frozen,
        scratch=scratch,
    )
    return evaluation, manifest


def _plan_again(evaluation: Evaluation, manifest: Manifest) -> tuple[PlannedArm, ...]:
    setting = Setting(
        corpus=locate_corpus(evaluation), point=manifest.point, run_id=manifest.run_id
    )
    return plan_arms(evaluation, setting, trials=manifest.trials)
