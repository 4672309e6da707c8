"""What commands that ask arms share: a server, progress, Ctrl-C, the report, the exit code."""

from __future__ import annotations

import datetime as dt
import shlex
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coldrun.cli.options import Outputs, given_words, resume_command
from coldrun.tasks.lib.errors import ColdrunError

if TYPE_CHECKING:
    from coldrun.tasks.history.campaign import PointEvent
    from coldrun.tasks.judge.build_report import BuiltReport
    from coldrun.tasks.judge.report_model import Report
    from coldrun.tasks.lib.watch import Watch
    from coldrun.tasks.run.prepare import Evaluation
    from coldrun.tasks.run.run_lifecycle import RunRequest

INTERRUPTED = 130
FAREWELL_SECONDS = 10.0
"""How long Prefect may take to end once everything has landed."""


class InterruptedRunError(ColdrunError):
    """A run was stopped before it could land what had finished."""

    exit_code = INTERRUPTED


def evaluate_and_report(
    evaluation: Evaluation,
    request: RunRequest,
    *,
    revision: str | None,
    repo: str | None,
    outputs: Outputs,
    is_full: bool = False,
) -> int:
    """Run one evaluation, print its report, and give the exit code of its verdict.

    Ctrl-C (or SIGTERM) lands what finished and names the command that continues.
    """
    from coldrun.tasks.run.manifest import new_run_id
    from coldrun.tasks.run.run_lifecycle import check_request, find_resumable, revision_to_resume

    check_request(evaluation, request, revision=revision)
    if request.mode == "resume":
        run_id = find_resumable(request.warehouse, request.resume)
        revision = revision or revision_to_resume(request)
    else:
        run_id = new_run_id(dt.datetime.now(dt.UTC))

    def orchestrated() -> None:
        from coldrun.flows.evaluate import evaluate

        with serving_evaluation(evaluation, request.warehouse, repo):
            evaluate(
                evaluation.frozen.name,
                revision,
                request.mode,
                resume=request.resume,
                run_id=run_id,
                trials=request.trials,
            )

    def here() -> None:
        from coldrun.tasks.judge.land_judgement import run_here

        run_here(evaluation, replace(request, run_id=run_id), revision)  # or what is left of it

    built: BuiltReport = conduct(
        orchestrated,
        here,
        awaits=run_id,
        outputs=outputs,
        on_landed=lambda built: print_report_outputs(built.report, outputs, is_full=is_full),
        lost=lambda watch: lost_run(watch, evaluation.config_path),
    )
    return exit_code_of(built.report, evaluation.config_path, outputs)


def serving_evaluation(
    evaluation: Evaluation, warehouse: Path, repo: str | None
) -> AbstractContextManager[None]:
    """Serve one evaluation, for its flow."""
    from coldrun.tasks.lib.served import serving

    name = evaluation.frozen.name
    return serving(
        {name: evaluation.config_path},
        warehouse=warehouse,
        scratch=evaluation.scratch,
        repos={name: repo},
    )


def conduct(
    orchestrated: Callable[[], object],
    here: Callable[[], object],
    *,
    awaits: str,
    outputs: Outputs,
    on_event: Callable[[PointEvent], None] = lambda _: None,
    on_landed: Callable[[Any], None] = lambda _: None,
    lost: Callable[[Watch], BaseException],
) -> Any:
    """Do long work with progress on stderr, and Ctrl-C as a stop.

    Args:
        orchestrated: Calls the flow, where a Prefect server runs.
        here: Does the same in this process, where none does.
        awaits: What the watch calls the result: a run's id, or a kind.
        on_landed: Called once with the result, before the orchestrator has come to its end.
        lost: What to raise when it was stopped, and what had finished could not land in time.
    """
    from coldrun.flows.interruptible import Interrupted, call_interruptibly
    from coldrun.flows.prefect_server import find_server, use_server
    from coldrun.tasks.lib.watch import Watch, watching
    from coldrun.tasks.report.progress import show_progress

    told: list[float] = []

    def tell() -> bool:
        value = watch.results.get(awaits)
        if value is not None and not told:
            told.append(time.monotonic())
            display.close()
            on_landed(value)
        return bool(told) and time.monotonic() - told[0] > FAREWELL_SECONDS

    with (
        show_progress(outputs.notes) as display,
        watching(
            Watch(on_phase=display.phase, on_progress=display.update, on_event=on_event)
        ) as watch,
    ):
        server = find_server(display.note)
        try:
            if server is None:
                call_interruptibly(here, watch=watch)
            else:
                with use_server(server, verbose=outputs.verbose):
                    from coldrun.flows.orchestrate import OrchestrationLost, call_flow

                    try:
                        call_flow(orchestrated, watch=watch, on_poll=tell)
                    except OrchestrationLost as error:
                        display.note(f"orchestration lost at {time.strftime('%H:%M')} ({error})")
                if awaits not in watch.results:
                    call_interruptibly(here, watch=watch)
        except Interrupted:
            if awaits not in watch.results:
                raise lost(watch) from None
        tell()
    return watch.results.get(awaits)


def lost_run(watch: Watch, config_path: Path) -> BaseException:
    """What is raised when a run was stopped and could not land."""
    if watch.run_id is None:
        return KeyboardInterrupt()
    return InterruptedRunError(
        "interrupted before the answers could land; they are kept, continue with: "
        + resume_command(config_path, watch.run_id)
    )


def exit_code_of(report: Report, config_path: Path, outputs: Outputs) -> int:
    """The exit code of a run that was just executed; one that was interrupted can be continued."""
    if report.status == "interrupted":
        outputs.notes.print_command(
            "interrupted; continue with:", resume_command(config_path, report.run_id)
        )
        return INTERRUPTED
    return report.exit_code


def print_report_outputs(
    report: Report, outputs: Outputs, *, is_full: bool = False, stratum: str | None = None
) -> None:
    """Print a report for people and write it for machines."""
    from coldrun.tasks.report.run_document import print_report, render_markdown

    print_report(
        report,
        outputs.people,
        is_full=is_full,
        stratum=stratum,
        options=shlex.join(["", *given_words("warehouse")]).removeprefix("''"),
    )
    outputs.write(
        to_json=report.to_json(),
        to_markdown=render_markdown(report, stratum=stratum),
    )
