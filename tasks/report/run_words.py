"""The sentences and cells of a run's report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coldrun.tasks.judge.report_model import (
    ArmPart,
    BarPart,
    GatePart,
    MeasurePart,
    Report,
)
from coldrun.tasks.lib.plain_text import counted, noun
from coldrun.tasks.lib.records import DROP_REASONS
from coldrun.tasks.report.document import Line, Style, lines

MEASURED_NOTHING = "** measured nothing **"


def panel_words(name: str, digest: str) -> str:
    """A panel as first lines name it: with the first 12 digits of its hash."""
    return f"panel {name} {digest.rpartition(':')[2][:12]}"


def first_line(report: Report) -> str:
    """What executed and what was replayed, on which panel, at which point: always line one."""
    counts = report.counts
    parts = [f"executed {counts.executed}"]
    if counts.resumed:
        parts[0] += f" ({counts.resumed} of them before it was resumed)"
    parts += [f"replayed {counts.replayed}", f"tool failures {counts.infra}"]
    if counts.degraded:
        parts.append(f"degraded {counts.degraded}")
    parts.append(panel_words(report.panel.name, report.panel.digest))
    if (point := report.point) is not None:
        dirty = " DIRTY work tree" if point.is_dirty else ""
        parts.append(f"point {point.commit[:12]}{dirty}")
    return " · ".join(parts)


def sealing_lines(report: Report) -> Iterator[Line]:
    """Which arms could reach more than their keys hold, and why."""
    by_reason: dict[str, list[str]] = {}
    for arm, reason in (report.not_sealed or {}).items():
        by_reason.setdefault(reason, []).append(arm)
    for reason, arms in by_reason.items():
        yield Line(f"not sealed: {', '.join(arms)}: {reason}", "doubtful")


def knock_out_lines(report: Report) -> Iterator[Line]:
    """How the arms that are the product were without it."""
    for arm, found in report.without_product.items():
        if found == "answered":
            yield Line(f"without its product {arm} answered all the same", "bad")
        else:
            yield Line(f"without its product {arm} gave no answer: {found}")


def run_line(report: Report) -> str:
    """Which run, when, how long, on how many tasks."""
    return (
        f"run {report.run_id} · {counted(report.counts.tasks, 'task')} · "
        f"{counted(report.counts.planned, 'answer')} planned · {_time_words(report)}"
    )


def _time_words(report: Report) -> str:
    seconds = f"{report.wall_seconds:.1f} s"
    if not report.legs:
        # a run from before parts were recorded
        return f"{seconds} since it was resumed" if report.counts.resumed else seconds
    if len(report.legs) == 1:
        return seconds
    resumed = ", ".join(f"{leg.started_at[:19]}Z" for leg in report.legs[1:])
    killed = sum(leg.was_killed for leg in report.legs)
    at_least = "at least " if killed else ""
    ends = f"; {killed} killed, counted to the last answer" if killed else ""
    return f"{at_least}{seconds} in {len(report.legs)} parts (resumed {resumed}{ends})"


def headline(report: Report, gate: GatePart) -> str:
    """What one candidate may claim, in one line. Rows that are no measurement carry no claim."""
    if report.evidence in ("invalid", "incomplete"):
        return f"{gate.arm}: no claim, the run is {report.evidence} ({'; '.join(report.reasons)})"
    arm = arm_named(report, gate.arm)
    part = arm.measures[gate.measure]
    score = f"{gate.measure} {score_words(part, arm.n)}"
    if gate.outcome == "refused":
        return f"{gate.arm}: no verdict, {gate.reason}"
    if gate.outcome == "measured_nothing":
        text = f"{gate.arm}: {MEASURED_NOTHING} at {gate.measure}, {gate.reason}"
    elif gate.outcome == "inconclusive":
        text = f"{gate.arm}: inconclusive, {score}, {gate.reason}; {mde_words(gate, arm.n)}"
    else:
        text = f"{gate.arm}: {score}, {gate.reason}"
    if arm.replayed:
        text = f"replayed, not measured: {text}"
    for other in gate.beaten_by:
        theirs = arm_named(report, other).measures[gate.measure]
        if part.count is None or theirs.count is None:
            scores = f"{part.value:.3f} against {theirs.value:.3f}"
        else:
            scores = f"{part.count} against {theirs.count} of {arm.n}"
        text += f"; beaten by {other} ({scores})"
    for use in report.usage:
        if use.arm == gate.arm and not use.is_exercised:
            text += f"; not exercised ({use.component} in {use.used} of {counted(use.n, 'task')})"
    return text


def mde_words(gate: GatePart, n: int) -> str:
    """The smallest gain the panel can show."""
    if gate.mde_tasks is None:
        return f"{counted(n, 'task')} cannot show any gain with 80 % power"
    return f"{counted(n, 'task')} can show a net gain of {gate.mde_tasks:.1f} tasks with 80 % power"


def score_words(part: MeasurePart, n: int) -> str:
    """A score with its count and 95 % interval."""
    count = "" if part.count is None else f" ({part.count} of {n})"
    return f"{part.value:.3f}{count} [{part.low:.2f}, {part.high:.2f}]"


def arm_named(report: Report, name: str) -> ArmPart:
    """One arm of the report by name."""
    return next(arm for arm in report.arms if arm.name == name)


def measure_names(report: Report) -> list[str]:
    """The measures of the report, the primary first."""
    return list(report.arms[0].measures) if report.arms else []


def withheld_word(report: Report, arm: ArmPart) -> str:
    """What stands in place of a score that is withheld."""
    refused = {gate.arm for gate in report.gates if gate.outcome == "refused"}
    return "no verdict" if arm.name in refused else MEASURED_NOTHING


def seconds_words(seconds: float | None) -> str:
    """The time of an answer; without one nothing was executed."""
    return "replayed" if seconds is None else f"{seconds:.4f}"


def interval_words(low: float | None, high: float | None, n: int) -> str:
    """The limits of a difference of rates, in tasks; empty where there are none."""
    if low is None or high is None:
        return ""
    return f"[{low * n:+.1f}, {high * n:+.1f}]"


def gate_line(report: Report, gate: GatePart) -> str:
    """What the table of comparisons below it shows."""
    noise, floor = "no noise floor is known (one trial)", gate.noise_floor_tasks
    if floor is not None:
        noise = f"two runs of the same code differ by up to {floor:g} {noun(floor, 'task')}"
    family = sum(len(other.against) + len(other.compared) for other in report.gates)
    return (
        f"{gate.arm} at {gate.measure}, paired over {counted(report.counts.tasks, 'task')}; the "
        f"gate is p ≤ 0.025, one-sided and exact, and ≥ {gate.margin_tasks:g} "
        f"{noun(gate.margin_tasks, 'task')} more, against every null; "
        f"{mde_words(gate, report.counts.tasks)}; {noise}; Holm is "
        f"over the {counted(family, 'comparison')} printed:"
    )


def p_words(p: float) -> str:
    """A p-value as it is printed."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def late_lines(report: Report) -> Iterator[Line]:
    """What was registered after the fact."""
    changes = report.panel.changes_after_the_fact
    return lines((f"registered after the fact: {change}" for change in changes), "doubtful")


def bar_lines(bars: Iterable[BarPart]) -> Iterator[Line]:
    """Registered bars, and whether they were met."""
    for bar in bars:
        met = "met" if bar.met else "FAILED"
        style: Style = "good" if bar.met else "bad"
        how = "" if bar.rule == "point" else " (lower limit)"
        if bar.against is None:
            text = f"{bar.arm} {bar.measure} {bar.value:.3f}{how} ≥ {bar.at_least:.3f}"
        else:
            text = (
                f"{bar.arm} over {bar.against} at {bar.measure} {bar.value:+.3f}{how} "
                f"≥ {bar.at_least:+.3f}"
            )
        yield Line(f"bar {met}: {text}", style, is_strong=True)


def sampling_lines(report: Report) -> Iterator[str]:
    """What more trials are worth: one line per arm with trials whose score is not withheld."""
    if report.evidence in ("invalid", "incomplete"):
        return
    for arm in report.arms:
        if arm.budgets and not arm.is_withheld:
            sizes = "/".join(str(budget.samples) for budget in arm.budgets)
            coverage = "/".join(f"{budget.coverage:.3f}" for budget in arm.budgets)
            verified = "; ".join(
                f"{'/'.join(f'{budget.verified[error]:.3f}' for budget in arm.budgets)} "
                f"where it errs {float(error):.0%} of the time"
                for error in arm.budgets[0].verified
            )
            yield (
                f"{arm.name}, {report.primary} above 0 in {sizes} samples: coverage {coverage}; "
                f"right in the first that a verifier takes: {verified}"
            )


def cluster_lines(report: Report) -> Iterator[str]:
    """Intervals that allow for correlation within clusters, beside the plain ones."""
    found = report.clusters
    if found is None or report.evidence in ("invalid", "incomplete"):
        return
    shown = {arm.name for arm in report.arms if arm.role != "null" and not arm.is_withheld}
    yield (
        f"by {counted(found.clusters, 'cluster')} of {found.stratum}, whose tasks are not "
        f"independent; p by clusters is at least {found.smallest_p:.2g}:"
    )
    for name, score in found.arms.items():
        if name in shown:
            worth = ""
            if score.design_effect is not None and score.effective_tasks is not None:
                worth = (
                    f", design effect {score.design_effect:.2f}: worth "
                    f"{score.effective_tasks:.0f} independent tasks"
                )
            limits = _limits_words(score.low, score.high)
            yield f"{name}, {report.primary}: {score.value:.3f} {limits}{worth}"
    for part in found.differences:
        if part.arm in shown:
            limits = _limits_words(part.low, part.high)
            yield (
                f"{part.arm} against {part.against}, {report.primary}: {part.difference:+.3f} "
                f"{limits}, p by clusters {p_words(part.p)}"
            )


def _limits_words(low: float | None, high: float | None) -> str:
    return "(one cluster bounds nothing)" if low is None else f"[{low:.2f}, {high:.2f}]"


def panel_line(report: Report) -> str:
    """Where the denominator comes from."""
    panel = report.panel
    drops = ", ".join(
        f"{panel.drops[reason]} {reason.replace('_', ' ')}"
        for reason in DROP_REASONS
        if panel.drops.get(reason)
    )
    dropped = f" ({drops})" if drops else ""
    return (
        f"{counted(panel.candidates, 'candidate')} − {panel.candidates - panel.solvable} "
        f"dropped{dropped} "
        f"= {panel.solvable} solvable; {report.counts.tasks} asked"
    )


def distribution_line(report: Report) -> str:
    """The answer distribution of the asked tasks."""
    spread, named = report.panel.distribution, report.panel.names_gold_share
    names = "" if named is None else f"; {named:.0%} of the queries name a gold file"
    return (
        f"answers: {counted(spread.shapes, 'shape')}, the commonest has {spread.top_share:.0%}, "
        f"{spread.effective_shapes:.1f} effective{names}"
    )
