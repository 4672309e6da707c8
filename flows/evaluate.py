"""The flow of one evaluation: check out → plan → ask in shards → land and analyse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import polars  # noqa: F401 - what the report needs, imported while the server starts
import scipy.optimize
import scipy.sparse  # noqa: F401
from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.utilities.annotations import quote

from coldrun.tasks.config import Config
from coldrun.tasks.freeze.freeze_panel import FrozenResult
from coldrun.tasks.freeze.stage import freeze_stage
from coldrun.tasks.judge.build_report import BuiltReport
from coldrun.tasks.judge.stage import land_stage
from coldrun.tasks.lib.records import Point
from coldrun.tasks.mine.stage import mine_stage
from coldrun.tasks.run.execute import Shard
from coldrun.tasks.run.prepare import Evaluation
from coldrun.tasks.run.run_lifecycle import RunRequest, StartedRun
from coldrun.tasks.run.stage import ask_stage, check_out_stage, plan_stage

Value = TypeVar("Value")


def unseen(value: Value) -> Value:
    """Pass a value to a stage, or out of a flow, by reference: Prefect neither walks through it
    nor stores it."""
    return cast("Value", quote(value))


def seen(value: Value) -> Value:
    """The value that a flow returned as `unseen`."""
    return value.unwrap() if isinstance(value, quote) else value


def make_runner(config: Config) -> TaskRunner[PrefectFuture[Any]]:
    """Threads, as many as the configuration allows."""
    runner: Any = ThreadPoolTaskRunner(max_workers=config.run.concurrency)
    return cast("TaskRunner[PrefectFuture[Any]]", runner)


@dataclass(slots=True)
class Control:
    """A hold on the running flow, for whoever shows it or may have to stop it.

    Attributes:
        started: The run that is being asked.
        is_stopping: It was told to stop.
        on_start: Told of each run before it asks.
        on_phase: Told what begins, in a word or two.
        landed: What the flow will return, once all of it is in the warehouse.
        on_landed: Told of that in the main thread.
    """

    started: StartedRun | None = None
    is_stopping: bool = False
    on_start: Callable[[StartedRun], None] = lambda _: None
    on_phase: Callable[[str], None] = lambda _: None
    landed: Any = None
    on_landed: Callable[[Any], None] = lambda _: None

    def stop(self) -> None:
        """Take no further questions; what finished is landed."""
        self.is_stopping = True
        if self.started is not None:
            self.started.run.stop()

    def tell_landed(self) -> None:
        """Tell what has landed, if anything has."""
        if self.landed is not None:
            self.on_landed(self.landed)

    def begin(self, started: StartedRun) -> None:
        """Take hold of a run that is about to ask."""
        self.started = started
        self.on_phase("starting")
        self.on_start(started)
        if self.is_stopping:
            started.run.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A configuration that is not frozen yet."""

    name: str
    config: Config
    config_dir: Path
    scratch: Path


def evaluate(
    evaluation: Evaluation,
    request: RunRequest,
    *,
    revision: str | None = None,
    control: Control | None = None,
) -> BuiltReport:
    """Run one evaluation as a Prefect flow.

    Raises:
        ColdrunError: What stopped it; answers that had finished are kept and can be resumed.
    """
    held = control or Control()

    @flow(
        name="evaluate",
        flow_run_name=f"evaluate {evaluation.frozen.name}",
        task_runner=make_runner(evaluation.config),
        persist_result=False,
        validate_parameters=False,
    )
    def evaluate_flow(config: str, panel_digest: str, mode: str, commit: str | None) -> BuiltReport:
        del config, panel_digest, mode
        if evaluation.config.product is not None:
            held.on_phase("checking out")
        point: Point | None = check_out_stage(unseen(evaluation), commit)
        return unseen(ask_and_land(evaluation, request, point=point, control=held))

    return seen(
        evaluate_flow(str(evaluation.config_path), evaluation.frozen.digest, request.mode, revision)
    )


def try_repository(
    draft: Draft,
    request: RunRequest,
    *,
    on_frozen: Callable[[FrozenResult], Evaluation],
    control: Control | None = None,
) -> BuiltReport:
    """Mine, freeze and evaluate in one flow.

    Args:
        draft: The configuration that was chosen for the repository.
        on_frozen: Shows and writes what was frozen, and gives the evaluation that rests on it.

    Raises:
        ColdrunError: As `evaluate`, and what mining and freezing refuse.
    """
    held = control or Control()

    @flow(
        name="try",
        flow_run_name=f"try {draft.name}",
        task_runner=make_runner(draft.config),
        persist_result=False,
        validate_parameters=False,
    )
    def try_flow(repository: str, base: str | None, head: str) -> BuiltReport:
        del repository, base, head
        held.on_phase("mining")
        panel = unseen(draft.config.panel)
        mined = mine_stage(panel, unseen(draft.config_dir), unseen(draft.scratch))
        frozen = freeze_stage(unseen(draft.config), unseen(mined))
        return unseen(ask_and_land(on_frozen(frozen), request, point=None, control=held))

    panel = draft.config.panel
    return seen(try_flow(panel.repo or "", panel.base, panel.head))


def ask_and_land(
    evaluation: Evaluation, request: RunRequest, *, point: Point | None, control: Control
) -> BuiltReport:
    """The part of the flow that every point goes through; called within a flow run."""
    started: StartedRun = plan_stage(unseen(evaluation), unseen(request), unseen(point))
    control.begin(started)
    try:
        _ask_all(started)
    except BaseException:
        started.abandon()
        raise
    control.on_phase("judging")
    control.landed = land_stage(unseen(started))
    return cast("BuiltReport", control.landed)


def _ask_all(started: StartedRun) -> None:
    shards = started.shards()
    futures = [
        ask_stage.submit(unseen(started.run), unseen(shard), label=shard_label(shard))
        for shard in shards
    ]
    failure: BaseException | None = None
    for future in futures:
        try:
            future.result()
        except Exception as error:  # noqa: BLE001 - raised again once all shards have stopped
            failure = failure or error
            started.run.stop()
    if failure is not None:
        raise failure


def shard_label(shard: Shard) -> str:
    """How a shard is called in Prefect's interface."""
    return f"ask · {shard.arm.name} · {shard.number} of {shard.of}"
