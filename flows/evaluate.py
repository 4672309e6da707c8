"""The flows of one evaluation: check out → plan → ask in shards → land → judge → publish.

Parameters and results are plain: names and ids. What they mean is in the environment of the process
(`served`), and what a stage needs it reads from the run's manifest, so any process can run it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from prefect import flow, runtime
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.stage import freeze_stage
from coldrun.tasks.judge.load_run import load_report
from coldrun.tasks.judge.stage import judge_stage
from coldrun.tasks.lib.git.clone import is_url
from coldrun.tasks.lib.served import check_run_id, served
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.mine.stage import mine_stage
from coldrun.tasks.run.live_run import end_run, find_run, list_shards
from coldrun.tasks.run.run_lifecycle import Mode
from coldrun.tasks.run.stage import ask_stage, check_out_stage, fetch_stage, land_stage, plan_stage


def run_name() -> str:
    """The name of a flow run in Prefect's interface: kind, evaluation, commit."""
    given = runtime.flow_run.parameters
    words = [str(runtime.flow_run.flow_name), str(given["evaluation"])]
    words += [str(given[name])[:12] for name in ("commit", "commits") if given.get(name)]
    return " ".join(words)


@flow(name="evaluate", flow_run_name=run_name, persist_result=False)
def evaluate(  # noqa: PLR0913  a run's request
    evaluation: str,
    commit: str | None = None,
    mode: Mode = "cold",
    *,
    resume: str | None = None,
    run_id: str | None = None,
    trials: int | None = None,
    always_executed: Sequence[str] = (),
    only_primary: bool = False,
) -> str:
    """Run one evaluation.

    Args:
        evaluation: The name of an evaluation that is served, frozen.
        commit: The product's commit; left out, as configured.
        mode: `cold`, `reuse`, or `resume` with the run to continue.
        resume: The id of the run to continue.
        run_id: The id of a new run; left out, it is made.
        trials: How often everything is asked, in place of what is configured.
        always_executed: Arms that are executed even with `reuse`.
        only_primary: Whether only the panel's primary part is asked.

    Returns:
        The id of the run, which has landed and is judged.
    """
    product = load_config(served().path_of(evaluation)).product
    if product is not None and is_url(product.repo):
        fetch_stage(evaluation)
    point = check_out_stage(evaluation, commit) if product is not None else None
    request = {
        "mode": mode,
        "resume": resume,
        "run_id": None if run_id is None else check_run_id(run_id),
        "trials": trials,
        "always_executed": list(always_executed),
        "only_primary": only_primary,
    }
    return publish(answer_run(plan_stage(evaluation, point, request)))


@flow(name="try", flow_run_name=run_name, persist_result=False)
def try_repository(evaluation: str, *, run_id: str) -> str:
    """Mine, freeze and evaluate what a configuration names; gives the id of the run."""
    freeze_stage(evaluation, mine_stage(evaluation))
    return publish(answer_run(plan_stage(evaluation, None, {"run_id": check_run_id(run_id)})))


@flow(name="answer", flow_run_name="answer {run_id}", persist_result=False)
def answer(run_id: str) -> str:
    """Ask, land and judge a run that was planned elsewhere; gives its id."""
    return answer_run(check_run_id(run_id))


def answer_run(run_id: str) -> str:
    """The part of a flow that every planned run goes through."""
    try:
        _ask_all(run_id)
        current_watch().on_phase("judging")
        land_stage(run_id)
        judge_stage(run_id)
    except BaseException:
        end_run(run_id, is_abandoned=True)
        raise
    return run_id


def _ask_all(run_id: str) -> None:
    started = find_run(served().warehouse, run_id, served().scratch)
    settings = started.evaluation.config.run
    with make_runner(settings.runner, settings.concurrency) as runner:
        shards = zip(list_shards(served().warehouse, run_id), started.shards(), strict=True)
        futures = [
            runner.submit(
                ask_stage.with_options(
                    task_run_name=f"ask · {shard.arm.name} · {shard.number} of {shard.of}",
                    tags={f"evaluation:{started.manifest.name}", f"arm:{shard.arm.name}"},
                ),
                {"run_id": run_id, "number": number},
            )
            for number, shard in shards
        ]
        try:
            for future in futures:
                future.result()
        except BaseException:
            started.run.stop()  # shards that run end soon; leaving the runner drops the others
            raise


def make_runner(kind: str, concurrency: int) -> TaskRunner[Any]:
    """Prefect's runner of a kind: threads of this process, or processes."""
    make = ProcessPoolTaskRunner if kind == "processes" else ThreadPoolTaskRunner
    return make(max_workers=concurrency)


def publish(run_id: str) -> str:
    """Show a run in Prefect's interface: its arms as a table, and a link to its rows."""
    # the run has landed; what shows it may fail
    with contextlib.suppress(Exception):
        warehouse = served().warehouse
        built = current_watch().results.get(run_id) or load_report(warehouse, run_id)
        rows = [
            {"arm": arm.name, "role": arm.role, "n": arm.n}
            | {name: round(part.value, 4) for name, part in arm.measures.items()}
            for arm in built.report.arms
        ]
        key = f"run-{run_id}"
        create_table_artifact(key=key, table=rows, description=built.report.verdict)
        file = warehouse / "runs" / f"{run_id}.parquet"
        create_link_artifact(key=f"{key}-rows", link=file.as_uri(), link_text=run_id)
    return run_id
