"""The life of one run: started or continued, executed, landed. No orchestrator here."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from coldrun.tasks.arms.service.http_settings import require_variables
from coldrun.tasks.config import ServerArm
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.machine.file_locks import IN_USE, take_lock
from coldrun.tasks.lib.records import Point
from coldrun.tasks.product.point_use import hold_point
from coldrun.tasks.run.capture import Capture, CaptureStore, hold_run, open_store
from coldrun.tasks.run.capture_key import differing_components
from coldrun.tasks.run.environment import environment_fingerprint
from coldrun.tasks.run.execute import (
    PlannedArm,
    Run,
    Shard,
    execute_shard,
    plan_shards,
)
from coldrun.tasks.run.knock_out import answered_without_product, ask_without_product
from coldrun.tasks.run.landed_rows import find_earlier, find_reusable, land_answers
from coldrun.tasks.run.manifest import Manifest, manifest_from_values, new_run_id
from coldrun.tasks.run.prepare import Evaluation, Setting, locate_corpus, plan_arms
from coldrun.tasks.run.run_record import RunRecord, parts_of
from coldrun.tasks.run.spot_check import check_replays
from coldrun.warehouse.reader import connect
from coldrun.warehouse.writer import prepare_warehouse

Mode = Literal["cold", "reuse", "resume"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What is asked for: cold by default; `resume` names the run to continue.

    `always_executed` names arms that are executed even with `reuse`: in a history the controls are
    asked again at every point, so that their stability is a fact and not a replay. With
    `only_primary` only the tasks of the panel's primary part are asked. `run_id` is that of a new
    run; left out, it is made.
    """

    warehouse: Path
    mode: Mode = "cold"
    resume: str | None = None
    trials: int | None = None
    always_executed: frozenset[str] = frozenset()
    only_primary: bool = False
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedPart:
    """This process's part of the run: its number, wall-clock and monotonic start."""

    number: int
    started_at: str
    began: float


@dataclass(slots=True, kw_only=True)
class StartedRun:
    """A run that is being executed. Close it with `land_run`, or `abandon` it.

    `held` are its locks and `part` is what this process does of it, where this process planned it;
    `planned` are the shards that were open then. `record` is what it left behind, once landed.
    """

    evaluation: Evaluation
    manifest: Manifest
    store: CaptureStore
    run: Run
    warehouse: Path
    held: ExitStack = field(default_factory=ExitStack)
    part: StartedPart | None = None
    planned: tuple[Shard, ...] = ()
    record: RunRecord | None = None

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.manifest.run_id

    def shards(self) -> tuple[Shard, ...]:
        """What was still to be executed when it was started."""
        arms = {arm.name: arm for arm in self.run.arms}
        return tuple(replace(shard, arm=arms[shard.arm.name]) for shard in self.planned)

    @property
    def is_complete(self) -> bool:
        """Whether every planned answer is there."""
        return all(self.run.is_done(ask.key) for arm in self.run.arms for ask in arm.asks)

    def abandon(self) -> None:
        """End all sessions and let go of the run; its captures stay and can be resumed."""
        self.run.stop()
        self.run.close()
        self.held.close()


def check_request(evaluation: Evaluation, request: RunRequest, *, revision: str | None) -> None:
    """Refuse quickly what cannot be run, before a server is started for it.

    Raises:
        ConfigError: A variable that an arm needs is not set.
        UsageError: There is nothing to resume, or no product to check out.
        LockError, RepositoryError: The corpus is not there.
        StorageError: The warehouse cannot be written.
    """
    if revision is not None and evaluation.config.product is None:
        raise UsageError(
            f"--commit {revision}: {evaluation.config_path} has no [product] to check out"
        )
    for arm in evaluation.config.arms:
        if isinstance(arm, ServerArm):
            require_variables(arm)
    prepare_warehouse(request.warehouse)
    if request.mode == "resume":
        find_resumable(request.warehouse, request.resume)
    connect(request.warehouse).close()
    locate_corpus(evaluation)


def start_run(evaluation: Evaluation, request: RunRequest, *, point: Point | None) -> StartedRun:
    """Start a run, or take up a dead one.

    Raises:
        UsageError: The run to continue is not there, is being written, or was another run: other
            panel, arms, product or code.
        PointError: Another run has moved the point to its own commit.
        StorageError: The warehouse cannot be written.
    """
    prepare_warehouse(request.warehouse)
    now, began = dt.datetime.now(dt.UTC), time.monotonic()
    is_resume = request.mode == "resume"
    run_id = (
        find_resumable(request.warehouse, request.resume)
        if is_resume
        else request.run_id or new_run_id(now)
    )
    with ExitStack() as stack:
        stack.callback(take_lock(evaluation.scratch / IN_USE, is_shared=True).release)
        stack.enter_context(hold_point(point))
        stack.enter_context(hold_run(request.warehouse, run_id))
        store = open_store(request.warehouse, run_id)
        trials, only_primary = evaluation.trials(request.trials), request.only_primary
        known: dict[str, Capture] = {}
        if is_resume:
            manifest = manifest_from_values(store.read_manifest()[0])
            _check_same_settings(manifest, evaluation, point)
            trials, only_primary = manifest.trials, manifest.only_primary
            known = store.read_captures()
        setting = Setting(corpus=locate_corpus(evaluation), point=point, run_id=run_id)
        arms = plan_arms(evaluation, setting, trials=trials, only_primary=only_primary)
        if is_resume:
            _check_same_keys(manifest, arms, known)
            known = {
                key: replace(capture, is_resumed=capture.evidence == "executed")
                for key, capture in known.items()
            }
        else:
            manifest = Manifest(
                run_id=run_id,
                name=evaluation.frozen.name,
                config=evaluation.config,
                config_path=str(evaluation.config_path),
                lock=evaluation.frozen.lock,
                panel_digest=evaluation.frozen.digest,
                lock_digest=evaluation.frozen.lock_digest,
                point=point,
                environment=environment_fingerprint(),
                planned={arm.name: len(arm.asks) for arm in arms},
                trials=trials,
                only_primary=only_primary,
                started_at=now.isoformat(),
                mode=request.mode,
                unsealed={
                    arm.name: arm.identity.unsealed
                    for arm in arms
                    if arm.identity.unsealed is not None
                },
                knock_outs=ask_without_product(arms),
            )
            store.write_manifest(manifest.to_values(), evaluation.frozen.data)
        part = _begin_part(store, manifest, now=now, began=began)
        run = Run(
            run_id=run_id,
            store=store,
            seed=evaluation.config.sample.seed,
            arms=arms,
            done=known,
        )
        if request.mode == "reuse":
            reusable = [arm for arm in arms if arm.name not in request.always_executed]
            doubted = _replay(request.warehouse, run, reusable)
            if doubted:
                manifest = replace(manifest, doubted=doubted)
                store.write_manifest(manifest.to_values(), evaluation.frozen.data)
        planned = plan_shards(arms, run.is_done)
        store.write_shards([shard.to_values() for shard in planned])
        return StartedRun(
            evaluation=evaluation,
            manifest=manifest,
            store=store,
            run=run,
            warehouse=request.warehouse,
            held=stack.pop_all(),
            part=part,
            planned=planned,
        )
    raise AssertionError("unreachable")


def _begin_part(
    store: CaptureStore, manifest: Manifest, *, now: dt.datetime, began: float
) -> StartedPart:
    """Write down that a part of the run begins, numbered after those that are there.

    A run from before parts were recorded has had one.
    """
    started_at = now.isoformat()
    number = store.count_legs() + 1
    if number == 1 and manifest.started_at != started_at:
        store.put_leg(1, started_at=manifest.started_at, seconds=None)
        number = 2
    store.put_leg(number, started_at=started_at, seconds=None)
    return StartedPart(number=number, started_at=started_at, began=began)


def execute_locally(started: StartedRun, *, concurrency: int) -> None:
    """Execute all shards in threads of this process, without an orchestrator.

    Raises:
        ColdrunError: The first error of a shard; the others are stopped.
    """
    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        futures = [pool.submit(execute_shard, started.run, shard) for shard in started.shards()]
        try:
            for future in futures:
                future.result()
        except BaseException:
            started.run.stop()
            raise


def land_run(started: StartedRun) -> RunRecord:
    """End the sessions and land the answers; what is left is to judge them.

    Returns:
        What the run left behind; of an interrupted run too, with what had finished.
    """
    record = collect_record(started)
    land_answers(
        started.warehouse,
        started.run_id,
        tasks=record.tasks,
        captures=record.captures,
        sessions=record.sessions,
    )
    started.record = record
    return record


def collect_record(started: StartedRun) -> RunRecord:
    """End the sessions, and gather what the run left behind."""
    run, store = started.run, started.store
    is_interrupted = run.is_stopping
    run.close()
    planned = {ask.key for arm in run.arms for ask in arm.asks}
    if not planned <= run.done.keys():
        run.done = {**store.read_captures(), **run.done}  # other processes may have answered
    captures = tuple(
        sorted(
            (capture for key, capture in run.done.items() if key in planned),
            key=lambda capture: (capture.arm, capture.trial, capture.task_id),
        )
    )
    part = started.part
    if part is None:
        is_interrupted = len(captures) < len(planned)
    else:
        store.put_leg(
            part.number, started_at=part.started_at, seconds=time.monotonic() - part.began
        )
    legs = parts_of(store.read_legs(), captures)
    return RunRecord(
        manifest=started.manifest,
        tasks=started.evaluation.frozen.tasks,
        captures=captures,
        sessions=tuple(store.read_sessions()),
        wall_seconds=sum(leg.seconds for leg in legs),
        legs=legs,
        status="interrupted" if is_interrupted else "finished",
        invalid=tuple(
            dict.fromkeys(
                [
                    *store.read_invalid(),
                    *run.invalid,
                    *answered_without_product(started.manifest.knock_outs),
                ]
            )
        ),
        earlier=find_earlier(started.warehouse, started.manifest),
    )


def is_resumable(warehouse: Path, run_id: str) -> bool:
    """Whether an unfinished run of that id is there."""
    return (warehouse / "captures" / run_id / "run.json").exists()


def find_resumable(warehouse: Path, text: str | None) -> str:
    """The full id of the unfinished run that `text` (an id, the start of one, or `last`) names.

    Raises:
        UsageError: None or several fit.
    """
    folder = warehouse / "captures"
    found = sorted(path.parent.name for path in folder.glob("*/run.json"))
    fitting = (
        found[-1:] if text == "last" else [name for name in found if name.startswith(text or "")]
    )
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{text!r} is the start of {len(fitting)} runs; give more of the id")
    if (warehouse / "runs" / f"{text}.parquet").exists():
        raise UsageError(
            f"run {text} is finished: there is nothing to resume; see `coldrun report {text}`"
        )
    known = f"unfinished: {', '.join(found[-5:])}" if found else "no run is unfinished"
    raise UsageError(f"no run {text!r} to continue; {known}")


def revision_to_resume(request: RunRequest) -> str | None:
    """The commit that an unfinished run measures, whatever `HEAD` has become since.

    None when it has no product, or measures a dirty work tree, which has no commit to go back to.

    Raises:
        UsageError: There is no such run.
    """
    run_id = find_resumable(request.warehouse, request.resume)
    store = open_store(request.warehouse, run_id)
    point = manifest_from_values(store.read_manifest()[0]).point
    return None if point is None or point.is_dirty else point.commit


def _replay(warehouse: Path, run: Run, arms: Sequence[PlannedArm]) -> list[str]:
    """Take over matching captures of earlier runs, written down as replayed before all else.

    Returns:
        The arms of which some were executed again and did not agree: nothing of them is replayed.
    """
    keys = {ask.key for arm in arms if arm.identity.is_identified for ask in arm.asks}
    kept, doubted = check_replays(run, arms, find_reusable(warehouse, keys))
    for key, capture in kept.items():
        run.done[key] = capture.as_replay(run.run_id)
        run.store.put(run.done[key])
    return doubted


def _check_same_settings(manifest: Manifest, evaluation: Evaluation, point: Point | None) -> None:
    """Refuse to continue a run on another panel, with other arms, or at another point.

    Raises:
        UsageError: Names what differs from what the run was started with.
    """
    if manifest.panel_digest != evaluation.frozen.digest:
        raise UsageError(
            f"run {manifest.run_id} asks the panel {manifest.panel_digest}, the configuration has "
            f"{evaluation.frozen.digest}; a run never mixes two panels, start a new one"
        )
    if manifest.lock_digest != evaluation.frozen.lock_digest:
        raise _another_run(manifest, "the lock, that is measures, bars or guards,")
    before = {arm.name: arm for arm in manifest.config.arms}
    now = {arm.name: arm for arm in evaluation.config.arms}
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if changed:
        noun = "arm" if len(changed) == 1 else "arms"
        raise _another_run(manifest, f"the {noun} {', '.join(changed)}")
    if _place(manifest.point) != _place(point):
        raise _another_run(
            manifest, f"the point, from {_place(manifest.point)} to {_place(point)},"
        )


def _check_same_keys(
    manifest: Manifest, arms: Sequence[PlannedArm], known: dict[str, Capture]
) -> None:
    """Refuse to continue a run whose answers were given to other keys.

    Raises:
        UsageError: Names the component of the key that differs.
    """
    planned = {(arm.name, ask.trial, ask.question.id): ask for arm in arms for ask in arm.asks}
    for capture in known.values():
        ask = planned[capture.arm, capture.trial, capture.task_id]
        if ask.key != capture.key:
            parts = ", ".join(differing_components(ask.parts, capture.key_parts))
            raise _another_run(manifest, f"{parts} of {capture.arm}")


def _another_run(manifest: Manifest, changed: str) -> UsageError:
    return UsageError(
        f"run {manifest.run_id} was started with something else ({changed} changed since); "
        "a run never mixes two of them, start a new one"
    )


def _place(point: Point | None) -> str:
    return "none" if point is None else f"{point.commit} (tree {point.tree})"
