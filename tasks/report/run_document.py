"""The report of a run: its first screen, and the document with everything behind it."""

from __future__ import annotations

from collections.abc import Iterator

from coldrun.tasks.judge.attribution_model import AblationPart, EffectPart, UsagePart
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.judge.strata import production_lines, stratum_line, stratum_table
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.report import run_words as words
from coldrun.tasks.report.console import PeopleConsole
from coldrun.tasks.report.cost_document import cost_blocks
from coldrun.tasks.report.document import (
    Block,
    Code,
    Heading,
    Line,
    Paragraph,
    Style,
    Table,
    lines,
    warning_lines,
)
from coldrun.tasks.report.first_screen import first_screen
from coldrun.tasks.report.markdown import to_markdown
from coldrun.tasks.report.terminal import print_document

WIDEST_SCREEN = 100
"""Columns that the first screen takes of a wide terminal."""

GATE_HEADERS = ["against", "role", "score", "Δ tasks", "95 %", "up", "down", "p", "Holm"]
EFFECT_HEADERS = [
    *("from → to", "tasks", "n", "kept", "gained", "regressed", "neither"),
    *("Δ tasks", "95 %", "p", "Holm"),
]

_VERDICT_STYLES: dict[str, Style] = {"measured": "good", "inconclusive": "doubtful"}
_OUTCOME_STYLES: dict[str, Style] = {"beats_nulls": "good", "inconclusive": "doubtful"}
_EVIDENCE_WORDS = {
    "executed": "every answer was executed in this run",
    "mixed": "some answers are replayed from earlier runs",
    "replayed": "nothing was executed; every answer is replayed from an earlier run",
    "incomplete": "answers are missing or came too fast to have run",
    "invalid": "these rows must not be read as a measurement",
}


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
    split = list(_stratum_blocks(report, stratum))
    width = min(console.width, WIDEST_SCREEN)
    is_ascii = console.options.ascii_only
    print_document(first_screen(report, width=width, is_ascii=is_ascii, options=options), console)
    details = [*(_details(report) if is_full else ()), *split]
    if details:
        console.print()
        print_document(details, console)


def render_markdown(report: Report, *, stratum: str | None = None) -> str:
    """The whole report as Markdown.

    Raises:
        UsageError: The run has no such stratum.
    """
    title = f"{report.panel.name}: {report.verdict.replace('_', ' ')}"
    lead = Paragraph(words.first_line(report), is_strong=True)
    split = _stratum_blocks(report, stratum)
    return to_markdown([lead, Heading(title), *_details(report), *split])


def _details(report: Report) -> Iterator[Block]:
    """Where it comes from, the nulls and the arms, what they may claim, with every figure."""
    yield from _origin(report)
    styles = {"null": "dim", "candidate": "bold"}
    yield Table(
        headers=words.arm_headers(report),
        rows=[words.arm_cells(report, arm) for arm in report.arms],
        styles=[styles.get(arm.role, "") for arm in report.arms],  # type: ignore[misc]
    )
    for gate in report.gates:
        style = _OUTCOME_STYLES.get(gate.outcome, "bad")
        yield Line(words.headline(report, gate), style, is_strong=True)
    for gate in report.gates:
        if gate.outcome != "refused":
            yield Paragraph(words.gate_line(report, gate))
            parts = [*gate.against, *gate.compared]
            rows = [words.gate_cells(part, report.counts.tasks) for part in parts]
            yield Table(headers=GATE_HEADERS, rows=rows)
    yield from lines(usage_line(part) for part in report.usage)
    yield from lines(ablation_line(report, part) for part in report.ablations)
    yield from _effects(report)
    if report.costs is not None:
        yield from cost_blocks(report, report.costs)
    yield from lines(production_lines(report))
    yield from words.registered_lines(report)
    yield from warning_lines(report.warnings)


def _origin(report: Report) -> Iterator[Block]:
    """The verdict, the run, the panel and the point, with full hashes."""
    panel, point = report.panel, report.point
    verdict = f"verdict {report.verdict} · evidence {report.evidence}: "
    verdict += _EVIDENCE_WORDS[report.evidence]
    verdict += "" if report.status == "finished" else " (the run was interrupted)"
    yield Line(verdict, _VERDICT_STYLES.get(report.verdict, "bad"))
    yield from lines((f"because {reason}" for reason in report.reasons), depth=1)
    yield from lines(
        [words.run_line(report), words.panel_line(report), words.distribution_line(report)]
    )
    yield Line(("panel ", Code(panel.digest)))
    if panel.base:
        yield Line(("base ", Code(panel.base), ", head ", Code(panel.head or "")))
    if point:
        yield Line(("point ", Code(point.commit), " of ", Code(point.repo)))
        yield Line(("tree ", Code(point.tree)))


def _stratum_blocks(report: Report, stratum: str | None) -> Iterator[Block]:
    if stratum is not None:
        headers, rows = stratum_table(report, stratum)
        yield Paragraph(stratum_line(report, stratum))
        yield Table(headers=headers, rows=list(rows), text_columns=1)


# --- ablations and uses of components ------------------------------------------------------------


def _effects(report: Report) -> Iterator[Block]:
    """Of each ablation on all tasks, then where the component was used; of each component
    against arms without it."""
    found = [
        (f"{part.of} → {part.arm}", part.component, effect)
        for part in report.ablations
        for effect in part.effects
    ] + [
        (f"{other.arm} → {use.arm}", use.component, effect)
        for use in report.usage
        for other in use.against
        for effect in other.effects
    ]
    if not found:
        return
    family = sum(effect.p is not None for _, _, effect in found)
    yield Paragraph(
        f"effects at {report.primary}, paired by task; p is two-sided, Holm is over the "
        f"{counted(family, 'effect')} printed:"
    )
    yield Table(headers=EFFECT_HEADERS, rows=[effect_cells(*effect) for effect in found])


def ablation_line(report: Report, part: AblationPart) -> str:
    """What differs between the two arms, and what may be said of it."""
    names = ", ".join(part.factors)
    if part.is_bundle:
        line = (
            f"from {part.of} to {part.arm}: {names} changed together; it is a bundle, and what it "
            "did belongs to none of them alone"
        )
    else:
        line = f"from {part.of} to {part.arm}: {names} changed, and nothing else"
    for arm in (words.arm_named(report, name) for name in (part.of, part.arm)):
        if arm.is_withheld:
            return f"{line}; {arm.name}: {words.withheld_word(report, arm)}, so no effect is told"
    return line


def usage_line(part: UsagePart) -> str:
    """In how many tasks an arm used its component, and whether that is enough."""
    share = part.used / part.n
    line = f"{part.arm}: used {part.component} in {part.used} of {counted(part.n, 'task')}"
    line += f" ({share:.0%}), {counted(part.events, 'use')}"
    if not part.min_use_share:
        return line
    word = "exercised" if part.is_exercised else "NOT EXERCISED"
    return f"{line}; {word}, {part.min_use_share:.0%} was declared"


def effect_cells(names: str, component: str | None, effect: EffectPart) -> list[str]:
    """One row of the table of effects."""
    where = {"all": "all", "used": f"{component} used", "unused": f"{component} not used"}
    counts = (effect.n, effect.kept, effect.gained, effect.regressed, effect.residual)
    return [
        names,
        where[effect.tasks],
        *map(str, counts),
        "–" if effect.difference is None else f"{effect.difference * effect.n:+.1f}",
        words.interval_words(effect.low, effect.high, effect.n),
        "–" if effect.p is None else words.p_words(effect.p),
        "" if effect.holm_p is None else words.p_words(effect.holm_p),
    ]
