"""What `run` and `try` share: a server, a flow with progress, Ctrl-C, the report, the exit code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cli.options import people_console, speaks_to_stderr, write_outputs

if TYPE_CHECKING:
    from flows.evaluate import Control
    from tasks.report.build import BuiltReport
    from tasks.report.model import Report
    from tasks.run.conduct import RunRequest
    from tasks.run.execute import Progress
    from tasks.run.prepare import Evaluation

    OnProgress = Callable[[Progress], None]

INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where a report goes."""

    json_file: str | None = None
    markdown_file: str | None = None
    verbose: bool = False

    def console(self) -> Console:
        """Where text for people goes: stdout, unless a machine reads that."""
        return people_console(stderr=speaks_to_stderr(self.json_file, self.markdown_file))


def evaluate_and_report(
    evaluation: Evaluation, request: RunRequest, *, revision: str | None, outputs: Outputs
) -> int:
    """Run one evaluation, print its report, and give the exit code of its verdict.

    Ctrl-C (or SIGTERM) lands what finished and names the command that continues.
    """

    def run(control: Control, on_progress: OnProgress) -> BuiltReport:
        from flows.evaluate import evaluate

        asked = replace(request, on_progress=on_progress)
        return evaluate(evaluation, asked, revision=revision, control=control)

    built = run_flow(run, scratch=evaluation.scratch, verbose=outputs.verbose)
    return print_outcome(built, evaluation.config_path, outputs)


def run_flow(
    run: Callable[[Control, OnProgress], BuiltReport], *, scratch: Path, verbose: bool
) -> BuiltReport:
    """Call `run` with a Prefect server at hand, progress on stderr, and Ctrl-C as a stop."""
    errors = people_console(stderr=True)
    with prefect_server(scratch, errors, verbose=verbose):
        from flows.evaluate import Control
        from tasks.report.progress import show_progress

        control = Control()
        with stop_on_signal(control.stop), show_progress(errors) as on_progress:
            return run(control, on_progress)


def print_outcome(built: BuiltReport, config_path: Path, outputs: Outputs) -> int:
    """Print and write the report of a run that was just executed; give the exit code."""
    report = built.report
    print_report_outputs(report, outputs)
    if report.status == "interrupted":
        people_console(stderr=True).print(
            f"interrupted; continue with: coldrun run {config_path} --resume {report.run_id}",
            soft_wrap=True,
        )
        return INTERRUPTED
    return report.exit_code


def print_report_outputs(report: Report, outputs: Outputs) -> None:
    """Print a report for people and write it for machines."""
    from tasks.report.markdown import render_markdown
    from tasks.report.terminal import print_report

    print_report(report, outputs.console())
    write_outputs(
        json_file=outputs.json_file,
        markdown_file=outputs.markdown_file,
        to_json=report.to_json(),
        to_markdown=render_markdown(report),
    )


@contextmanager
def prefect_server(scratch: Path, console: Console, *, verbose: bool) -> Iterator[None]:
    """A Prefect server for a while, and Prefect's settings in place before it is imported."""
    from flows.server import use_server

    def announce(line: str) -> None:
        console.print(line, soft_wrap=True, style="dim")

    with use_server(scratch, verbose=verbose, announce=announce, is_awaited=False) as server:
        import flows.evaluate  # noqa: F401 - its two seconds pass while the server starts

        server.wait_until_ready()
        yield


@contextmanager
def stop_on_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Turn the first Ctrl-C or SIGTERM into an orderly stop; the second one interrupts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []

    def on_signal(number: int, frame: object) -> None:
        del frame
        seen.append(number)
        if len(seen) > 1:
            raise KeyboardInterrupt
        # not in the handler itself: ending sessions takes locks that this thread may hold
        threading.Thread(target=stop, name="stop", daemon=True).start()

    signals = (signal.SIGINT, signal.SIGTERM)
    earlier = {number: signal.signal(number, on_signal) for number in signals}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
