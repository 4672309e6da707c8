"""What commands that ask arms share: a server, progress, Ctrl-C, the report, the exit code."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coldrun.cli.options import Outputs, given_words, resume_command
from coldrun.tasks.lib.errors import ColdrunError

if TYPE_CHECKING:
    from coldrun.flows.prefect_server import ServerHandle
    from coldrun.tasks.history.campaign import PointEvent
    from coldrun.tasks.judge.build_report import BuiltReport
    from coldrun.tasks.judge.report_model import Report
    from coldrun.tasks.lib.watch import Watch
    from coldrun.tasks.run.prepare import Evaluation
    from coldrun.tasks.run.run_lifecycle import RunRequest

INTERRUPTED = 130


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
    from coldrun.tasks.run.run_lifecycle import (
        check_request,
        find_resumable,
        revision_to_resume,
    )

    check_request(evaluation, request, revision=revision)
    if request.mode == "resume":
        run_id = find_resumable(request.warehouse, request.resume)
        revision = revision or revision_to_resume(request)
    else:
        run_id = new_run_id(dt.datetime.now(dt.UTC))

    def run() -> None:
        from coldrun.flows.evaluate import evaluate

        evaluate(
            str(evaluation.config_path),
            revision,
            request.mode,
            warehouse=str(request.warehouse),
            scratch=str(evaluation.scratch),
            resume=request.resume,
            run_id=run_id,
            trials=request.trials,
            repo=repo,
        )

    built: BuiltReport = run_flow(
        run,
        awaits=run_id,
        scratch=evaluation.scratch,
        outputs=outputs,
        on_landed=lambda built: print_report_outputs(built.report, outputs, is_full=is_full),
        lost=lambda watch: lost_run(watch, evaluation.config_path),
    )
    return exit_code_of(built.report, evaluation.config_path, outputs)


def run_flow(
    run: Callable[[], object],
    *,
    awaits: str,
    scratch: Path,
    outputs: Outputs,
    on_event: Callable[[PointEvent], None] = lambda _: None,
    on_landed: Callable[[Any], None] = lambda _: None,
    lost: Callable[[Watch], BaseException],
) -> Any:
    """Call `run` with a Prefect server at hand, progress on stderr, and Ctrl-C as a stop.

    Args:
        run: Calls the flow.
        awaits: What the watch calls the flow's result: a run's id, or a kind.
        scratch: The scratch folder.
        outputs: Where notes go.
        on_event: Told of each point of a history.
        on_landed: Called once with the result, as soon as everything has landed: a report is
            printed before the orchestrator has come to its end.
        lost: What to raise when it was stopped, and what had finished could not land in time.

    Returns:
        The result; of an interrupted run, with what had finished.
    """
    from coldrun.tasks.lib.watch import Watch, watching
    from coldrun.tasks.report.progress import show_progress

    told: list[Any] = []

    def tell() -> None:
        value = watch.results.get(awaits)
        if value is not None and not told:
            told.append(value)
            display.close()
            on_landed(value)

    with (
        show_progress(outputs.notes) as display,
        prefect_server(scratch, display.note, verbose=outputs.verbose) as server,
        watching(
            Watch(on_phase=display.phase, on_progress=display.update, on_event=on_event)
        ) as watch,
    ):
        from coldrun.flows.quiet import FlowInterrupted
        from coldrun.flows.quiet import run_flow as call_flow

        try:
            call_flow(server, run, watch=watch, on_poll=tell)
        except FlowInterrupted:
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
    """Print a report for people and write it for machines.

    Raises:
        UsageError: The run has no such stratum, or a file cannot be written.
    """
    from coldrun.tasks.report.markdown import render_markdown
    from coldrun.tasks.report.terminal import print_report

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


@contextmanager
def prefect_server(
    scratch: Path, announce: Callable[[str], None], *, verbose: bool
) -> Iterator[ServerHandle]:
    """A Prefect server for a while, and Prefect's settings in place before it is imported."""
    from coldrun.flows.prefect_server import use_server

    with use_server(scratch, verbose=verbose, announce=announce, is_awaited=False) as server:
        import coldrun.flows.evaluate  # noqa: F401 - its two seconds pass while the server starts

        server.wait_until_ready()
        yield server
