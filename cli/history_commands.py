"""What `backfill`, `decompose` and `nightly` share: a server, events for people, the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from coldrun.cli.evaluating import INTERRUPTED, InterruptedRunError, conduct, serving_evaluation
from coldrun.cli.options import Outputs, command_again, write_output
from coldrun.tasks.lib.plain_text import counted, cut_text

if TYPE_CHECKING:
    from coldrun.tasks.history.campaign import PointEvent
    from coldrun.tasks.history.history_model import History
    from coldrun.tasks.history.history_requests import HistoryRequest


def conduct_and_report(
    call_flow: Callable[[], object],
    request: HistoryRequest,
    *,
    repo: str | None,
    outputs: Outputs,
) -> int:
    """Conduct a history, by `call_flow` where a server runs, and print its report.

    Returns:
        The exit code.
    """

    def orchestrated() -> None:
        with serving_evaluation(request.evaluation, request.warehouse, repo):
            call_flow()

    def here() -> None:
        from coldrun.tasks.history.history_lifecycle import conduct_history
        from coldrun.tasks.lib.watch import current_watch

        current_watch().results["history"] = conduct_history(request)

    again = command_again(request.evaluation.config_path)
    history: History = conduct(
        orchestrated,
        here,
        awaits="history",
        outputs=outputs,
        on_event=tell_points(outputs.notes, len(request.commits)),
        on_landed=lambda history: _report(history, outputs),
        lost=lambda _: InterruptedRunError(
            f"interrupted; what was measured is kept, continue with: {again}"
        ),
    )
    if history.status == "interrupted":
        outputs.notes.print_command("interrupted; continue with:", again)
        return INTERRUPTED
    return history.exit_code


def _report(history: History, outputs: Outputs) -> None:
    from coldrun.tasks.history.history_document import history_document

    chart = outputs.svg_file
    outputs.show(history_document(history, chart=_link_of(outputs)), history.to_json())
    if chart is not None:
        from coldrun.tasks.history.chart import history_chart

        write_output(chart, history_chart(history))


def _link_of(outputs: Outputs) -> str | None:
    chart, page = outputs.svg_file, outputs.markdown_file
    if chart is None or chart == "-":
        return None
    path = Path(chart).absolute()
    is_beside = page not in (None, "-") and Path(str(page)).absolute().parent == path.parent
    return path.name if is_beside else chart


def tell_points(console: Console, commits: int | None = None) -> Callable[[PointEvent], None]:
    """What says on stderr which point is measured, of how many commits, and how it went."""

    def tell(event: PointEvent) -> None:
        name = f"{event.commit.commit[:12]} {cut_text(event.commit.subject, 60)}"
        match event.state:
            case "begins":
                of = "" if commits is None else f" (of {counted(commits, 'commit')})"
                if commits is not None and event.number > commits:
                    of = " (once more, for the controls)"
                line = f"point {event.number}{of}: {name}"
            case "known":
                line = f"point {event.number}: {name}: {event.note}"
            case "failed":
                line = f"point {event.number} failed: {event.note.partition(chr(10))[0]}"
            case "measured":
                return
        console.print(Text(line), soft_wrap=True, style="dim")

    return tell
