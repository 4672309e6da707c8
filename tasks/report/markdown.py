"""The report of a run as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tasks.plain import one_line
from tasks.report import words
from tasks.report.model import Report
from tasks.report.strata import production_lines


def render_markdown(report: Report) -> str:
    """The same report as on the terminal, with full hashes."""
    return "\n".join(inert(line) for line in _lines(report))


def inert(line: str) -> str:
    """A line of ours in which nothing quoted can start a line, a tag or a link of its own."""
    return one_line(line).replace("<", "&lt;").replace("](", "]\\(")


def _lines(report: Report) -> Iterator[str]:
    yield f"**{words.first_line(report)}**"
    yield ""
    yield f"# {report.panel.name}: {report.verdict.replace('_', ' ')}"
    yield ""
    yield f"- {words.verdict_line(report)}"
    yield from (f"  - because {reason}" for reason in report.reasons)
    yield f"- {words.run_line(report)}"
    yield f"- {words.panel_line(report)}"
    yield f"- {words.distribution_line(report)}"
    yield f"- panel `{report.panel.digest}`"
    if report.panel.base:
        yield f"- base `{report.panel.base}`, head `{report.panel.head}`"
    if report.point:
        yield f"- point `{report.point.commit}` of `{report.point.repo}`"
        yield f"- tree `{report.point.tree}`"
    yield from (
        f"- registered after the fact: {text}" for text in report.panel.changes_after_the_fact
    )
    yield ""
    yield from table_lines(
        words.arm_headers(report), (words.arm_cells(report, arm) for arm in report.arms)
    )
    yield ""
    yield from (f"- **{words.headline(report, gate)}**" for gate in report.gates)
    for gate in (gate for gate in report.gates if gate.outcome != "refused"):
        yield ""
        yield words.gate_line(report, gate)
        yield ""
        yield from table_lines(
            words.GATE_HEADERS,
            (
                words.gate_cells(part, report.counts.tasks)
                for part in [*gate.against, *gate.compared]
            ),
        )
    yield ""
    yield from (f"- {line}" for line in production_lines(report))
    yield from (f"- {line}" for line in words.bar_lines(report))
    yield from (f"- warning: {warning}" for warning in report.warnings)


def table_lines(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table; the first two columns are text, the others numbers."""
    yield _row(headers)
    yield _row(["---" if number < 2 else "---:" for number in range(len(headers))])
    for cells in rows:
        yield _row(cells)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(inert(cell).replace("|", "\\|") for cell in cells) + " |"
