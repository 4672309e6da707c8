"""The runs and the panels of a warehouse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coldrun.tasks.lib.plain_text import counted, short_digest, times
from coldrun.tasks.report.document import Block, Heading, Line, lines, table_of

if TYPE_CHECKING:
    from coldrun.tasks.judge.panel_list import PanelLine

NO_RUNS = "no runs in {} yet; `coldrun try .` makes one"


def runs_document(
    rows: Sequence[Mapping[str, Any]], unfinished: Sequence[str], warehouse: Path
) -> Iterator[Block]:
    """The runs as a table, and how to continue those that did not end."""
    yield Heading("Runs", is_page_only=True)
    if not rows and not unfinished:
        yield Line(NO_RUNS.format(warehouse))
    if rows:
        yield table_of(map(_run_record, rows), text_columns=3)
    yield from lines(
        f"unfinished: {run_id} (continue with `coldrun run CONFIG --resume {run_id}`)"
        for run_id in unfinished
    )


def _run_record(row: Mapping[str, Any]) -> dict[str, str]:
    is_whole = row["status"] == "finished"
    return {
        "run": row["run_id"],
        "name": row["name"],
        "verdict": row["verdict"] if is_whole else f"{row['verdict']} (interrupted)",
        "executed": str(row["executed"]),
        "replayed": str(row["replayed"]),
        "failures": str(row["infra"]),
        "seconds": f"{row['wall_seconds']:.1f}",
        "point": (row["product_commit"] or "")[:12],
    }


def panels_document(panels: Sequence[PanelLine], warehouse: Path) -> Iterator[Block]:
    """Each panel: what it is, what it was used for, what its newest run found."""
    yield Heading("Panels", is_page_only=True)
    if not panels:
        yield Line(NO_RUNS.format(warehouse))
    for panel in panels:
        yield Line(
            f"{panel.name} {short_digest(panel.digest)} · {counted(panel.tasks, 'task')} · "
            f"{counted(panel.runs, 'run')} · newest {panel.newest_run} of {panel.newest_at}: "
            f"{panel.verdict}"
        )
        yield Line(f"used for: {'; '.join(panel.uses) or 'not declared'}", depth=1)
        if panel.sealed:
            failed = times(panel.fruitless)
            if panel.openings is None:
                opened = f"asked {failed} before that run, whether or not anything came back"
            else:
                opened = f"opened {times(panel.openings)} before that run"
                opened += f"; interrupted or failed {failed}" if panel.fruitless else ""
            yield Line(f"sealed: {counted(panel.sealed, 'task')}, {opened}", depth=1)
        scores = [
            f"{score.arm} " + ("withheld" if score.value is None else f"{score.value:.3f}")
            for score in panel.scores
        ]
        yield Line(f"{panel.primary}: {', '.join(scores) or 'no arm'}", depth=1)
