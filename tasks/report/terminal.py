"""The report of a run on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from coldrun.tasks.judge.cost_model import CostsPart
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.judge.strata import production_lines, stratum_line, stratum_table
from coldrun.tasks.lib.plain_text import one_line
from coldrun.tasks.report import attribution_words, cost_words, run_words
from coldrun.tasks.report.console import PeopleConsole
from coldrun.tasks.report.first_screen import Style, first_screen
from coldrun.tasks.report.tables import print_table

WIDEST_SCREEN = 100
"""Columns that the first screen takes of a wide terminal."""

_STYLES: dict[Style, str] = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "good": "bold green",
    "doubtful": "yellow",
    "bad": "bold red",
}
_VERDICT_STYLES = {"measured": "bold green", "inconclusive": "bold yellow"}


def print_report(
    report: Report,
    console: PeopleConsole,
    *,
    is_full: bool = False,
    stratum: str | None = None,
    options: str = "",
) -> None:
    """Print the first screen; with `is_full` or a stratum, what is behind it too.

    Args:
        report: The report.
        console: Where it goes.
        is_full: Print all tables, costs, strata and warnings.
        stratum: Split the primary measure by it.
        options: What the commands on the first screen need besides, such as ` --warehouse DIR`.

    Raises:
        UsageError: The run has no such stratum; nothing is printed then.
    """
    split = None if stratum is None else stratum_table(report, stratum)
    lines = first_screen(
        report,
        width=min(console.width, WIDEST_SCREEN),
        is_ascii=console.options.ascii_only,
        options=options,
    )
    for line in lines:
        if line.is_whole:
            console.print_whole(Text(line.text, _STYLES[line.style]))
        else:
            _print(console, line.text, _STYLES[line.style])
    if is_full:
        console.print()
        _print_details(report, console)
    if split is not None and stratum is not None:
        console.print()
        _print(console, stratum_line(report, stratum))
        print_table(console, *split, text_columns=1)


def _print_details(report: Report, console: Console) -> None:
    """Print the nulls, then the arms, then what they may claim, with every figure."""
    _print(console, run_words.verdict_line(report), _VERDICT_STYLES.get(report.verdict, "bold red"))
    for reason in report.reasons:
        _print(console, f"  because {reason}")
    _print(console, run_words.run_line(report))
    _print(console, run_words.panel_line(report))
    _print(console, run_words.distribution_line(report))
    for change in report.panel.changes_after_the_fact:
        _print(console, f"registered after the fact: {change}", "yellow")
    console.print()
    _print_arms(console, report)
    for gate in report.gates:
        style = {"beats_nulls": "green", "inconclusive": "yellow"}.get(gate.outcome, "red")
        _print(console, run_words.headline(report, gate), style)
    for gate in (gate for gate in report.gates if gate.outcome != "refused"):
        console.print()
        _print(console, run_words.gate_line(report, gate))
        parts = [*gate.against, *gate.compared]
        cells = [run_words.gate_cells(part, report.counts.tasks) for part in parts]
        print_table(console, run_words.GATE_HEADERS, cells)
    if report.ablations or report.usage:
        _print_effects(console, report)
    if report.costs is not None:
        _print_costs(console, report, report.costs)
    for line in (
        *run_words.cluster_lines(report),
        *run_words.sampling_lines(report),
        *production_lines(report),
    ):
        _print(console, line)
    for line in run_words.bar_lines(report):
        _print(console, line, "bold red" if "FAILED" in line else "green")
    for warning in report.warnings:
        _print(console, f"warning: {warning}", "yellow")


def _print_effects(console: Console, report: Report) -> None:
    console.print()
    for line in attribution_words.lines(report):
        _print(console, line)
    rows = list(attribution_words.effect_rows(report))
    if rows:
        _print(console, attribution_words.effects_line(report))
        print_table(console, attribution_words.EFFECT_HEADERS, rows)


def _print_costs(console: Console, report: Report, costs: CostsPart) -> None:
    console.print()
    _print(console, cost_words.USED_LINE)
    print_table(console, cost_words.USED_HEADERS, cost_words.used_rows(costs))
    console.print()
    _print(console, cost_words.cost_line(costs))
    print_table(
        console, cost_words.cost_headers(costs), cost_words.cost_rows(costs), text_columns=1
    )
    for note in cost_words.cost_notes(report, costs):
        _print(console, note)
    rows = list(cost_words.pair_rows(report, costs))
    if rows:
        console.print()
        _print(console, cost_words.pair_line(report, costs))
        print_table(console, cost_words.PAIR_HEADERS, rows)
    for claim in cost_words.claim_lines(report, costs):
        _print(console, claim, "bold")


def _print_arms(console: Console, report: Report) -> None:
    print_table(
        console,
        run_words.arm_headers(report),
        [run_words.arm_cells(report, arm) for arm in report.arms],
        styles=[
            "dim" if arm.role == "null" else "bold" if arm.role == "candidate" else ""
            for arm in report.arms
        ],
    )


def _print(console: Console, line: str, style: str = "") -> None:
    console.print(Text(one_line(line), style=style), soft_wrap=True)
