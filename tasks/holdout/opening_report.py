"""What an opening of the sealed part may tell, and the documents that tell it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coldrun.tasks.holdout.openings import Opening, opening_words
from coldrun.tasks.judge.report_model import ArmPart, BarPart, GatePart, MeasurePart, Report
from coldrun.tasks.lib.plain_text import counted, short_digest
from coldrun.tasks.report import run_words as words
from coldrun.tasks.report.document import Block, Heading, Line, Paragraph, Table, lines
from coldrun.tasks.stats.intervals import compare_dev_sealed

OPENING_SCHEMA = 1


def declared_result(
    report: Report,
    aggregates: Sequence[str],
    dev: Mapping[tuple[str, str], tuple[int, int]],
) -> dict[str, Any]:
    """The declared aggregates of a report, and nothing else of it.

    `dev` has the hits and tasks on the dev part by arm and measure, for the gap between the two.

    Without the primary measure among them there is no gate, and so no verdict: the exit code is
    then that of the bars.
    """
    has_gate = report.primary in aggregates
    bars_code = int(any(not bar.met for bar in report.bars))
    return {
        "evidence": report.evidence,
        "verdict": report.verdict if has_gate else None,
        "exit_code": report.exit_code if has_gate else bars_code,
        "tasks": report.counts.tasks,
        "measures": list(aggregates),
        "arms": [_arm_result(arm, aggregates) for arm in report.arms],
        "gates": [gate.model_dump(mode="json") for gate in report.gates] if has_gate else [],
        "bars": [bar.model_dump(mode="json") for bar in report.bars],
        "gaps": list(_gaps(report, aggregates, dev)),
    }


def _gaps(
    report: Report,
    aggregates: Sequence[str],
    dev: Mapping[tuple[str, str], tuple[int, int]],
) -> Iterator[dict[str, Any]]:
    """Dev minus sealed where both are counts; the tasks differ, so it is not paired."""
    for arm in report.arms:
        for name in aggregates:
            count, found = arm.measures[name].count, dev.get((arm.name, name))
            if arm.role == "null" or arm.is_withheld or count is None or found is None:
                continue
            gap = compare_dev_sealed(found, (count, arm.n))
            yield {
                "arm": arm.name,
                "measure": name,
                "dev": list(found),
                "difference": gap.difference,
                "low": gap.interval.low,
                "high": gap.interval.high,
                "p": gap.p,
            }


def _arm_result(arm: ArmPart, aggregates: Sequence[str]) -> dict[str, Any]:
    told = arm.model_dump(mode="json", include={"name", "role", "n", "infra", "is_withheld"})
    measures = {name: arm.measures[name].model_dump(mode="json") for name in aggregates}
    return {**told, "measures": measures}


def opening_values(
    opening: Opening, openings: Sequence[Opening], *, allowed: int
) -> dict[str, Any]:
    """An opening as JSON values: its ledger line, and which opening it is."""
    return {
        "schema": OPENING_SCHEMA,
        "kind": "holdout_opening",
        "opening": opening.to_values(),
        "which": opening_words(opening, openings, allowed),
        "openings_declared": allowed,
    }


def opening_document(
    opening: Opening, openings: Sequence[Opening], *, allowed: int
) -> Iterator[Block]:
    """Which opening it is, why, by whom and of what, and the table of its results."""
    which = opening_words(opening, openings, allowed)
    yield Line(f"sealed part {short_digest(opening.sealed_digest)}: {which}")
    event = f" · event: {opening.event}" if opening.event else ""
    yield Line(
        f"line {opening.number} · {opening.at} · {opening.who} · reason: {opening.reason}{event}"
    )
    point = opening.point
    where = f" · point {point['commit'][:12]}" if point else ""
    dirty = " DIRTY work tree" if point and point["is_dirty"] else ""
    yield Line(
        f"{counted(opening.tasks, 'task')} · arms {', '.join(opening.arms)}{where}{dirty} · "
        f"configurations tried on dev before: {opening.configurations_tried}"
    )
    result = opening.result
    if result is None:
        yield Line(f"{opening.status}: nothing was told of the sealed part")
        return
    verdict = result["verdict"] or "none (the primary measure is not among the aggregates)"
    yield Line(f"verdict {verdict} · evidence {result['evidence']}")
    yield from lines(_gate_line(GatePart.model_validate(gate)) for gate in result["gates"])
    for gap in result["gaps"]:
        tuned = ": better on dev, which it was tuned on" if gap["low"] > 0 else ""
        yield Line(
            f"{gap['arm']} at {gap['measure']}, dev ({gap['dev'][0]} of {gap['dev'][1]}) minus "
            f"sealed: {gap['difference']:+.3f} [{gap['low']:+.2f}, {gap['high']:+.2f}]{tuned}"
        )
    yield from words.bar_lines(BarPart.model_validate(bar) for bar in result["bars"])
    yield Table(
        headers=["arm", "role", *(f"{name}, n = {result['tasks']}" for name in result["measures"])],
        rows=list(_result_rows(result)),
    )


def log_document(summary: str, openings: Sequence[Opening], *, allowed: int) -> Iterator[Block]:
    """All openings, and the sentence that sums them up."""
    yield Heading("Openings of the sealed part", is_page_only=True)
    for opening in openings:
        yield Heading(f"Line {opening.number}", level=2, is_page_only=True)
        yield from opening_document(opening, openings, allowed=allowed)
    yield Paragraph(summary)


def _result_rows(result: Mapping[str, Any]) -> Iterator[list[str]]:
    for arm in result["arms"]:
        cells = [
            words.score_words(MeasurePart.model_validate(arm["measures"][name]), arm["n"])
            for name in result["measures"]
        ]
        if arm["is_withheld"]:
            cells = [words.MEASURED_NOTHING, *("·" for _ in cells[1:])]
        failures = f" ({counted(arm['infra'], 'tool failure')})" if arm["infra"] else ""
        yield [f"{arm['name']}{failures}", arm["role"], *cells]


def _gate_line(gate: GatePart) -> str:
    what = {
        "measured_nothing": words.MEASURED_NOTHING,
        "inconclusive": "inconclusive",
        "beats_nulls": "beats the nulls",
    }.get(gate.outcome, gate.outcome)
    beaten = f"; beaten by {', '.join(gate.beaten_by)}" if gate.beaten_by else ""
    return f"{gate.arm} at {gate.measure}: {what}, {gate.reason}{beaten}"
