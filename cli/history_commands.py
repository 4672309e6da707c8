"""What `backfill`, `decompose` and `nightly` share: a server, events for people, the report."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from coldrun.cli.evaluating import INTERRUPTED, InterruptedRunError, conduct
from coldrun.cli.options import Function, Outputs, check_output, write_output
from coldrun.tasks.lib.plain_text import counted, cut_text

if TYPE_CHECKING:
    from coldrun.tasks.history.campaign import PointEvent
    from coldrun.tasks.history.history_lifecycle import HistoryRequest
    from coldrun.tasks.history.history_model import History


def chart_option(function: Function) -> Function:
    """`--svg FILE`: the chart."""
    return click.option(
        "--svg",
        "svg_file",
        metavar="FILE",
        callback=check_output,
        help="Also draw the score over the points, as SVG.",
    )(function)


def conduct_and_report(
    orchestrated: Callable[[], object],
    request: HistoryRequest,
    *,
    outputs: Outputs,
    svg_file: str | None,
    again: str,
) -> int:
    """Conduct a history, print its report, and give the exit code.

    Args:
        orchestrated: Calls the flow.
        request: What is asked for.
        outputs: Where the report goes.
        svg_file: Where the chart goes, if anywhere.
        again: The command that continues it.
    """
    history: History = conduct(
        orchestrated,
        lambda: conduct_here(request),
        awaits="history",
        outputs=outputs,
        on_event=PointTeller(outputs.notes, len(request.commits)).tell,
        on_landed=lambda history: report_history(history, outputs=outputs, svg_file=svg_file),
        lost=lambda _: InterruptedRunError(
            f"interrupted; what was measured is kept, continue with: {again}"
        ),
    )
    if history.status == "interrupted":
        outputs.notes.print_command("interrupted; continue with:", again)
        return INTERRUPTED
    return history.exit_code


def serving_history(request: HistoryRequest, repo: str | None) -> AbstractContextManager[None]:
    """Serve the evaluation of a history, for its flow."""
    from coldrun.tasks.lib.served import serving

    evaluation = request.evaluation
    name = evaluation.frozen.name
    return serving(
        {name: evaluation.config_path},
        warehouse=request.warehouse,
        scratch=evaluation.scratch,
        repos={name: repo},
    )


def conduct_here(request: HistoryRequest) -> None:
    """Conduct a history in this process, for the watch."""
    from coldrun.tasks.history.history_lifecycle import conduct_history
    from coldrun.tasks.lib.watch import current_watch

    current_watch().results["history"] = conduct_history(request)


def command_line(name: str, config_path: Path, *options: Mapping[str, object]) -> str:
    """The command that asks for the same again; options that are None or False are left out."""
    words = ["coldrun", name, str(config_path)]
    for key, value in ((key, value) for group in options for key, value in group.items()):
        if value is True:
            words.append(key)
        elif value is not None and value is not False:
            words += [key, str(value)]
    return shlex.join(words)


def report_history(history: History, *, outputs: Outputs, svg_file: str | None) -> None:
    """Print a history for people and write it for machines."""
    from coldrun.tasks.history.history_document import history_document

    chart = _beside(svg_file, outputs.markdown_file)
    outputs.show(history_document(history, chart=chart), history.to_json())
    if svg_file is not None:
        from coldrun.tasks.history.chart import history_chart

        write_output(svg_file, history_chart(history))


def _beside(svg_file: str | None, markdown_file: str | None) -> str | None:
    """The chart's name as the Markdown text links it."""
    if svg_file in (None, "-"):
        return None
    svg = Path(str(svg_file)).absolute()
    if (
        markdown_file not in (None, "-")
        and Path(str(markdown_file)).absolute().parent == svg.parent
    ):
        return svg.name
    return str(svg_file)


class PointTeller:
    """Says on stderr which point is measured, and how it went."""

    def __init__(self, console: Console, commits: int | None) -> None:
        self._console = console
        self._commits = commits

    def tell(self, event: PointEvent) -> None:
        """Print one line for one event."""
        name = f"{event.commit.commit[:12]} {cut_text(event.commit.subject, 60)}"
        match event.state:
            case "begins":
                of = ""
                if self._commits is not None:
                    is_repeat = event.number > self._commits
                    of = f" (of {counted(self._commits, 'commit')})"
                    of = " (once more, for the controls)" if is_repeat else of
                line = f"point {event.number}{of}: {name}"
            case "known":
                line = f"point {event.number}: {name}: {event.note}"
            case "failed":
                line = f"point {event.number} failed: {event.note.partition(chr(10))[0]}"
            case "measured":
                return
        self._console.print(Text(line), soft_wrap=True, style="dim")
