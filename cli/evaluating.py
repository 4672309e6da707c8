"""What commands that ask arms share: a server, progress, Ctrl-C, the report, the exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from coldrun.cli.options import Outputs, given_words, resume_command
from coldrun.tasks.lib.errors import ColdrunError

if TYPE_CHECKING:
    from coldrun.flows.evaluate import Control
    from coldrun.flows.prefect_server import ServerHandle
    from coldrun.tasks.judge.build_report import BuiltReport
    from coldrun.tasks.judge.report_model import Report
    from coldrun.tasks.report.progress import Display
    from coldrun.tasks.run.prepare import Evaluation
    from coldrun.tasks.run.run_lifecycle import RunRequest

INTERRUPTED = 130

Value = TypeVar("Value")


class InterruptedRunError(ColdrunError):
    """A run was stopped before it could land what had finished."""

    exit_code = INTERRUPTED


def evaluate_and_report(
    evaluation: Evaluation,
    request: RunRequest,
    *,
    revision: str | None,
    outputs: Outputs,
    is_full: bool = False,
) -> int:
    """Run one evaluation, print its report, and give the exit code of its verdict.

    Ctrl-C (or SIGTERM) lands what finished and names the command that continues.
    """

    from coldrun.tasks.run.run_lifecycle import check_request, revision_to_resume

    check_request(evaluation, request, revision=revision)
    if request.mode == "resume" and revision is None:
        revision = revision_to_resume(request)

    def run(control: Control, display: Display) -> BuiltReport:
        from coldrun.flows.evaluate import evaluate

        asked = replace(request, on_progress=display.update)
        return evaluate(evaluation, asked, revision=revision, control=control)

    built = run_flow(
        run,
        scratch=evaluation.scratch,
        outputs=outputs,
        on_landed=lambda built: print_report_outputs(built.report, outputs, is_full=is_full),
        lost=lost_run,
    )
    return exit_code_of(built.report, evaluation.config_path, outputs)


def run_flow(
    run: Callable[[Control, Display], Value],
    *,
    scratch: Path,
    outputs: Outputs,
    on_landed: Callable[[Value], None] = lambda _: None,
    lost: Callable[[Control], BaseException],
) -> Value:
    """Call `run` with a Prefect server at hand, progress on stderr, and Ctrl-C as a stop.

    Args:
        run: Runs the flow and gives its value.
        scratch: The scratch folder.
        outputs: Where notes go.
        on_landed: Called once with the value, as soon as everything has landed: a report is
            printed before the orchestrator has come to its end.
        lost: What to raise when it was stopped, and what had finished could not land in time.

    Returns:
        What `run` gave; of an interrupted run, with what had finished.
    """
    from coldrun.tasks.report.progress import show_progress

    told: list[Value] = []

    def tell(value: Value) -> None:
        if not told:
            told.append(value)
            display.close()
            on_landed(value)

    with (
        show_progress(outputs.notes) as display,
        prefect_server(scratch, display.note, verbose=outputs.verbose) as server,
    ):
        from coldrun.flows.evaluate import Control
        from coldrun.flows.quiet import FlowInterrupted
        from coldrun.flows.quiet import run_flow as call_flow

        control = Control(on_phase=display.phase, on_landed=tell)
        try:
            value = call_flow(server, lambda: run(control, display), control=control)
        except FlowInterrupted as interruption:
            if interruption.value is None:
                raise lost(control) from None
            value = interruption.value
        tell(value)
    return value


def lost_run(control: Control) -> BaseException:
    """What is raised when a run was stopped and could not land."""
    if control.started is None:
        return KeyboardInterrupt()
    config_path = control.started.evaluation.config_path
    return InterruptedRunError(
        "interrupted before the answers could land; they are kept, continue with: "
        + resume_command(config_path, control.started.run_id)
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
