"""What `run` and `try` share: a server, a flow with progress, Ctrl-C, the report, the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from coldrun.cli.options import Outputs, people_console, resume_command
from coldrun.tasks.errors import ColdrunError

if TYPE_CHECKING:
    from coldrun.flows.evaluate import Control
    from coldrun.flows.server import ServerHandle
    from coldrun.tasks.report.build import BuiltReport
    from coldrun.tasks.report.model import Report
    from coldrun.tasks.run.conduct import RunRequest
    from coldrun.tasks.run.execute import Progress
    from coldrun.tasks.run.prepare import Evaluation

    OnProgress = Callable[[Progress], None]

INTERRUPTED = 130


class InterruptedRunError(ColdrunError):
    """A run was stopped before it could land what had finished."""

    exit_code = INTERRUPTED


def evaluate_and_report(
    evaluation: Evaluation, request: RunRequest, *, revision: str | None, outputs: Outputs
) -> int:
    """Run one evaluation, print its report, and give the exit code of its verdict.

    Ctrl-C (or SIGTERM) lands what finished and names the command that continues.
    """

    from coldrun.tasks.run.conduct import check_request, revision_to_resume

    check_request(evaluation, request, revision=revision)
    if request.mode == "resume" and revision is None:
        revision = revision_to_resume(request)

    def run(control: Control, on_progress: OnProgress) -> BuiltReport:
        from coldrun.flows.evaluate import evaluate

        asked = replace(request, on_progress=on_progress)
        return evaluate(evaluation, asked, revision=revision, control=control)

    built = run_flow(run, scratch=evaluation.scratch, verbose=outputs.verbose)
    return print_outcome(built, evaluation.config_path, outputs)


def run_flow(
    run: Callable[[Control, OnProgress], BuiltReport], *, scratch: Path, verbose: bool
) -> BuiltReport:
    """Call `run` with a Prefect server at hand, progress on stderr, and Ctrl-C as a stop.

    Raises:
        KeyboardInterrupt: It was stopped before a run began.
        InterruptedRunError: It was stopped, and could not land in time; nothing is lost.
    """
    errors = people_console(stderr=True)
    with prefect_server(scratch, errors, verbose=verbose) as server:
        from coldrun.flows.evaluate import Control
        from coldrun.flows.quiet import FlowInterrupted
        from coldrun.flows.quiet import run_flow as call_flow
        from coldrun.tasks.report.progress import show_progress

        control = Control()
        with show_progress(errors) as on_progress:
            try:
                return call_flow(server, lambda: run(control, on_progress), stop=control.stop)
            except FlowInterrupted as interruption:
                if interruption.value is not None:
                    built: BuiltReport = interruption.value
                    return built
                if control.started is None:
                    raise KeyboardInterrupt from None
                config_path = control.started.evaluation.config_path
                raise InterruptedRunError(
                    "interrupted before the answers could land; they are kept, continue with: "
                    + resume_command(config_path, control.started.run_id)
                ) from None


def print_outcome(built: BuiltReport, config_path: Path, outputs: Outputs) -> int:
    """Print and write the report of a run that was just executed; give the exit code."""
    report = built.report
    print_report_outputs(report, outputs)
    if report.status == "interrupted":
        people_console(stderr=True).print(
            f"interrupted; continue with: {resume_command(config_path, report.run_id)}",
            soft_wrap=True,
        )
        return INTERRUPTED
    return report.exit_code


def print_report_outputs(report: Report, outputs: Outputs, *, stratum: str | None = None) -> None:
    """Print a report for people and write it for machines.

    Raises:
        UsageError: The run has no such stratum, or a file cannot be written.
    """
    from coldrun.tasks.report.markdown import render_markdown
    from coldrun.tasks.report.terminal import print_report

    print_report(report, outputs.console(), stratum=stratum)
    outputs.write(
        to_json=report.to_json(),
        to_markdown=render_markdown(report, stratum=stratum),
    )


@contextmanager
def prefect_server(scratch: Path, console: Console, *, verbose: bool) -> Iterator[ServerHandle]:
    """A Prefect server for a while, and Prefect's settings in place before it is imported."""
    from coldrun.flows.server import use_server

    def announce(line: str) -> None:
        console.print(line, soft_wrap=True, style="dim")

    with use_server(scratch, verbose=verbose, announce=announce, is_awaited=False) as server:
        import coldrun.flows.evaluate  # noqa: F401 - its two seconds pass while the server starts

        server.wait_until_ready()
        yield server
