"""The report of a run: its first screen, and the document with everything behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from coldrun.tasks.judge.report_model import (
    AblationPart,
    AgainstPart,
    ArmPart,
    EffectPart,
    Report,
    UsagePart,
)
from coldrun.tasks.lib.errors import UsageError
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
    RowStyle,
    Style,
    Table,
    lines,
    table_of,
    warning_lines,
)
from coldrun.tasks.report.first_screen import first_screen
from coldrun.tasks.report.markdown import to_markdown
from coldrun.tasks.report.terminal import print_document

WIDEST_SCREEN = 100
"""Columns that the first screen takes of a wide terminal."""

_ROLE_STYLES: dict[str, RowStyle] = {"null": "dim", "candidate": "bold"}
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

    `options` end the commands on the first screen, such as ` --warehouse DIR`.
    """
    split = list(stratum_blocks(report, stratum))
    width = min(console.width, WIDEST_SCREEN)
    is_ascii = console.options.ascii_only
    print_document(first_screen(report, width=width, is_ascii=is_ascii, options=options), console)
    details = [*(_details(report) if is_full else ()), *split]
    if details:
        console.print()
        print_document(details, console)


def render_markdown(report: Report, *, stratum: str | None = None) -> str:
    """The whole report as Markdown."""
    title = f"{report.panel.name}: {report.verdict.replace('_', ' ')}"
    lead = Paragraph(words.first_line(report), is_strong=True)
    split = stratum_blocks(report, stratum)
    return to_markdown([lead, Heading(title), *_details(report), *split])


def _details(report: Report) -> Iterator[Block]:
    yield from _origin(report)
    if report.arms:
        arms = table_of(_arm_record(report, arm) for arm in report.arms)
        yield replace(arms, styles=[_ROLE_STYLES.get(arm.role, "") for arm in report.arms])
    yield from _other_parts(report)
    for gate in report.gates:
        style = _OUTCOME_STYLES.get(gate.outcome, "bad")
        yield Line(words.headline(report, gate), style, is_strong=True)
    for gate in report.gates:
        if gate.outcome != "refused":
            yield Paragraph(words.gate_line(report, gate))
            parts = [*gate.against, *gate.compared]
            yield table_of(_gate_record(part, report.counts.tasks) for part in parts)
    yield from lines(_usage_line(part) for part in report.usage)
    yield from lines(_ablation_line(report, part) for part in report.ablations)
    yield from _effects(report)
    if report.costs is not None:
        yield from cost_blocks(report, report.costs)
    yield from lines(words.cluster_lines(report))
    yield from lines(words.sampling_lines(report))
    yield from words.bar_lines(report.bars)
    yield from warning_lines(report.warnings)


def _origin(report: Report) -> Iterator[Block]:
    panel, point = report.panel, report.point
    verdict = f"verdict {report.verdict} · evidence {report.evidence}: "
    verdict += _EVIDENCE_WORDS[report.evidence]
    verdict += "" if report.status == "finished" else " (the run was interrupted)"
    yield Line(verdict, _VERDICT_STYLES.get(report.verdict, "bad"))
    yield from lines((f"because {reason}" for reason in report.reasons), depth=1)
    yield from lines(
        [words.run_line(report), words.panel_line(report), words.distribution_line(report)]
    )
    for name, digest in (("panel", panel.digest), ("base", panel.base), ("head", panel.head)):
        if digest:
            yield Line((f"{name} ", Code(digest)))
    if point:
        yield Line(("point ", Code(point.commit), " of ", Code(point.repo)))
        yield Line(("tree ", Code(point.tree)))
    digest = Code(report.digest) if report.digest else "none: it landed before runs had one"
    yield Line(("digest of the run ", digest))
    yield from words.sealing_lines(report)
    yield from words.knock_out_lines(report)
    yield from words.late_lines(report)


def _other_parts(report: Report) -> Iterator[Block]:
    """The primary measure on the parts of the panel that are not the primary one."""
    measure = report.primary
    withheld = {arm.name for arm in report.arms if arm.is_withheld}
    for other in report.others:
        yield Heading(f"{other.name.capitalize()} part" if other.gates else "All tasks")
        gates = {gate.arm: gate.outcome.replace("_", " ") for gate in other.gates}
        rows = []
        for arm in other.arms:
            part = arm.measures[measure]
            is_told = arm.name not in withheld
            row = {
                "arm": arm.name,
                f"{measure}, n = {other.tasks}": words.score_words(part, arm.n) if is_told else "·",
            }
            if other.gates:
                low, high = part.population_low, part.population_high
                is_known = is_told and low is not None and high is not None
                row["of the population"] = f"[{low:.2f}, {high:.2f}]" if is_known else ""
                row["outcome"] = gates.get(arm.name, "")
            rows.append(row)
        yield table_of(rows)


def _arm_record(report: Report, arm: ArmPart) -> dict[str, str]:
    primary, *others = words.measure_names(report)
    is_null = arm.role == "null"
    score = arm.measures[primary]
    count = "" if score.count is None else f" ({score.count})"
    shown = f"{score.value:.3f}{count} [{score.low:.2f}, {score.high:.2f}]"
    record = {
        "arm": arm.name,
        "role": arm.role,
        f"{primary}, n = {report.counts.tasks}": (
            words.withheld_word(report, arm) if arm.is_withheld else shown
        ),
    }
    for name in others:
        record[name] = "·" if arm.is_withheld else f"{arm.measures[name].value:.3f}"
    for header, name in (("failures", "infra"), ("abstained",) * 2, ("degraded",) * 2):
        if any(getattr(other, name) for other in report.arms):
            record[header] = "" if is_null else str(getattr(arm, name))
    if any(other.stability for other in report.arms):
        # a null gives the same answer each time; random and permuted are expectations
        same = 1.0 if arm.kind not in ("random", "permuted") else None
        value = same if is_null else arm.stability.get("outcome_agreement")
        record["stable"] = "" if value is None else f"{value:.3f}"
    has_failed = arm.answer_seconds is None and arm.executed > 0
    seconds = "failed" if has_failed else words.seconds_words(arm.answer_seconds)
    return {**record, "s each": "" if is_null else seconds}


def _gate_record(part: AgainstPart, n: int) -> dict[str, str]:
    return {
        "against": part.arm,
        "role": part.role,
        "score": "" if part.value is None else f"{part.value:.3f}",
        "Δ tasks": f"{part.difference * n:+.1f}",
        "95 %": words.interval_words(part.low, part.high, n),
        "up": "–" if part.up is None else str(part.up),
        "down": "–" if part.down is None else str(part.down),
        "p": words.p_words(part.p),
        "Holm": "" if part.holm_p is None else words.p_words(part.holm_p),
    }


# --- strata, and what the sample was drawn from ---------------------------------------------------


def find_stratum(report: Report, name: str) -> str:
    """The stratum of that name, or the one whose name goes on after it: a date may be left out."""
    fitting = [found for found in sorted(report.strata) if f"{found} ".startswith(f"{name} ")]
    if name in fitting:
        return name
    if len(fitting) > 1:
        raise UsageError(f"{name!r} is the start of several strata: {', '.join(fitting)}; name one")
    if not fitting:
        known = ", ".join(sorted(report.strata)) or "none: its tasks are not marked"
        raise UsageError(f"run {report.run_id} has no stratum {name!r}; it has {known}")
    return fitting[0]


def stratum_blocks(report: Report, name: str | None) -> Iterator[Block]:
    """The primary measure of every arm in each part of a stratum."""
    if name is None:
        return
    stratum = find_stratum(report, name)
    yield Paragraph(
        f"{report.primary} by {stratum}, {counted(report.counts.tasks, 'task')}; the nulls come "
        "first, each with the answers that it gives on the whole panel:"
    )
    rows = []
    for value, by_arm in report.strata[stratum].items():
        row = [value, f"{next(iter(by_arm.values()))['n']:.0f}"]
        for arm in report.arms:
            score = by_arm[arm.name][report.primary]
            row.append("withheld" if arm.is_withheld else f"{score:.3f}")
        rows.append(row)
    headers = [stratum, "tasks", *(arm.name for arm in report.arms)]
    yield Table(headers=headers, rows=rows, text_columns=1)


# --- ablations and uses of components ------------------------------------------------------------


def _effects(report: Report) -> Iterator[Block]:
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
    yield table_of(_effect_record(*effect) for effect in found)


def _ablation_line(report: Report, part: AblationPart) -> str:
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


def _usage_line(part: UsagePart) -> str:
    share = part.used / part.n
    line = f"{part.arm}: used {part.component} in {part.used} of {counted(part.n, 'task')}"
    line += f" ({share:.0%}), {counted(part.events, 'use')}"
    if not part.min_use_share:
        return line
    word = "exercised" if part.is_exercised else "NOT EXERCISED"
    return f"{line}; {word}, {part.min_use_share:.0%} was declared"


def _effect_record(names: str, component: str | None, effect: EffectPart) -> dict[str, str]:
    where = {"all": "all", "used": f"{component} used", "unused": f"{component} not used"}
    return {
        "from → to": names,
        "tasks": where[effect.tasks],
        "n": str(effect.n),
        "kept": str(effect.kept),
        "gained": str(effect.gained),
        "regressed": str(effect.regressed),
        "neither": str(effect.residual),
        "Δ tasks": "–" if effect.difference is None else f"{effect.difference * effect.n:+.1f}",
        "95 %": words.interval_words(effect.low, effect.high, effect.n),
        "p": "–" if effect.p is None else words.p_words(effect.p),
        "Holm": "" if effect.holm_p is None else words.p_words(effect.holm_p),
    }
