"""The first screen of a report: what executed, what it means, the arms drawn, the next step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coldrun.tasks.judge.evidence import Verdict
from coldrun.tasks.judge.report_model import (
    AgainstPart,
    ArmPart,
    GatePart,
    MeasurePart,
    Report,
)
from coldrun.tasks.lib.plain_text import counted, cut_text
from coldrun.tasks.report.document import Line, Style, lines, warning_lines
from coldrun.tasks.report.run_words import (
    MEASURED_NOTHING,
    arm_named,
    bar_lines,
    first_line,
    late_lines,
    measure_names,
    sealing_lines,
    withheld_word,
)

SHOWN_WARNINGS = 2
SHOWN_CLAIMS = 6
NARROWEST_PLOT, WIDEST_PLOT = 24, 56
LONGEST_NAME = 24

_VERDICT_WORDS: dict[Verdict, tuple[str, Style]] = {
    "measured": ("MEASURED", "good"),
    "inconclusive": ("INCONCLUSIVE", "doubtful"),
    "measured_nothing": (MEASURED_NOTHING, "bad"),
    "replayed": ("REPLAYED, not measured", "bad"),
    "did_not_run": ("DID NOT RUN", "bad"),
    "invalid": ("INVALID, not a measurement", "bad"),
}

_NULL_WORDS = {
    "empty": "which answers nothing",
    "everything": "which always answers everything",
    "constant": "which gives every question the same answer",
    "most-changed": "which always names what was changed most often",
    "random": "which guesses",
    "permuted": "its own answers given to the wrong questions",
}

_MEASURE_WORDS = {
    "f1": "F1 (1: all of the right answer and nothing else)",
    "precision": "precision (the share of its answers that are right)",
    "recall": "recall (the share of the right answers that it names)",
    "mrr": "MRR (1: the first answer is right, 0.5: the second, …)",
    "ndcg": "nDCG (1: the right answers come first)",
}


def first_screen(
    report: Report, *, width: int, is_ascii: bool = False, options: str = ""
) -> Iterator[Line]:
    """The lines of the first screen, `width` columns wide; `options` end each command in it."""
    yield Line(first_line(report), is_strong=True)
    yield from sealing_lines(report)
    yield from _verdict_lines(report)
    if report.evidence in ("executed", "mixed", "replayed"):
        yield Line("")
        yield from _chart_lines(report, width=width, is_ascii=is_ascii)
        yield Line("")
        yield Line(
            "null: the score of an answer that ignores the question; a tool must beat each.",
            "dim",
        )
        yield from lines(_part_sentences(report))
    yield from lines(_panel_sentences(report), "dim")
    yield from bar_lines(report.bars)
    yield from late_lines(report)
    yield from warning_lines(report.warnings[:SHOWN_WARNINGS])
    more = len(report.warnings) - SHOWN_WARNINGS
    if more > 0:
        yield Line(f"and {counted(more, 'more warning')}, with the details", "doubtful")
    yield from (Line(text, is_whole=True) for text in _next_lines(report, options))


def _verdict_lines(report: Report) -> Iterator[Line]:
    word, style = _VERDICT_WORDS[report.verdict]
    is_strong = style != "doubtful"
    is_void = report.evidence in ("invalid", "incomplete")
    if is_void or report.verdict == "replayed" or not report.gates:
        otherwise = "no reason is known" if report.gates else "no arm was judged"
        reasons = "; ".join(report.reasons) or otherwise
        yield Line(f"{word}: {reasons}.", style, is_strong)
    if is_void:
        return
    prefix = f"{word}: " if report.verdict != "replayed" else "In these answers, "
    for number, gate in enumerate(report.gates[:SHOWN_CLAIMS]):
        sentence = _claim(report, gate)
        yield Line((prefix if number == 0 else "") + sentence, style, is_strong)
    if len(report.gates) > SHOWN_CLAIMS:
        more = counted(len(report.gates) - SHOWN_CLAIMS, "more candidate")
        yield Line(f"and {more}, with the details", style, is_strong)


def _part_sentences(report: Report) -> Iterator[str]:
    """What the other parts of the panel say: the random one of users, the population of all."""
    measure = report.primary
    shown = {arm.name for arm in report.arms if arm.role != "null" and not arm.is_withheld}
    for other in report.others:
        arms = sorted(other.arms, key=lambda arm: -arm.measures[measure].value)
        told = [arm for arm in arms if arm.name in shown][:SHOWN_CLAIMS]
        scores = "withheld"
        if told:
            has_limits = other.name == "random"
            words = (
                f"{arm.name} {_part_words(measure, arm, has_limits=has_limits)}" for arm in told
            )
            scores = ", ".join(words)
        best = next(arm for arm in arms if arm.role == "null" and arm.kind != "permuted")
        null = f"null {best.name} {_part_words(measure, best, has_limits=False)}"
        if other.name == "population":
            yield f"All {other.tasks} tasks: {scores}; {null}."
        elif other.name == "balanced":
            yield f"Balanced part, {counted(other.tasks, 'task')}: {scores}; {null}."
        else:
            yield (
                f"Random part, {counted(other.tasks, 'task')} as users will ask (95 % of all that "
                f"it was drawn from): {scores}; {null}."
            )


def _part_words(measure: str, arm: ArmPart, *, has_limits: bool) -> str:
    part = arm.measures[measure]
    words = f"{part.value * arm.n:.0f}" if _is_counted(measure) else f"{part.value:.2f}"
    if not has_limits or part.population_low is None or part.population_high is None:
        return words
    return f"{words} ({part.population_low:.0%}–{part.population_high:.0%})"


def _elsewhere(report: Report, gate: GatePart) -> str:
    """Where a candidate clears the nulls on one part and not on another."""
    text = ""
    for part in report.others:
        other = report.gate_of(gate.arm, part.name)
        if other is None or gate.outcome == "refused":
            continue
        if (other.outcome == "beats_nulls") != (gate.outcome == "beats_nulls"):
            does = (
                "clears the nulls" if other.outcome == "beats_nulls" else "does not clear the nulls"
            )
            text += f". On the {part.name} part it {does}: {other.reason}"
    return text


def _claim(report: Report, gate: GatePart) -> str:
    arm = arm_named(report, gate.arm)
    worst = min(gate.against, key=lambda other: other.difference)
    if gate.outcome == "refused":
        text = f"{gate.arm} gets no verdict: {gate.reason}"
    elif gate.outcome == "measured_nothing":
        words = [f", {known}" for kind, known in _NULL_WORDS.items() if worst.arm.startswith(kind)]
        text = f"{gate.arm} is not better than the null {worst.arm}{''.join(words[:1])}. "
        text += "Its score is withheld"
    else:
        text = _score_sentence(report, arm, gate.measure)
        best = max(gate.against, key=lambda other: other.value or 0.0)
        nulls = f"every null (best: {best.arm}, {_amount(report, gate.measure, best.value or 0)})"
        if gate.outcome == "beats_nulls":
            text += f", better than {nulls}"
            if beaten := [other for other in gate.compared if _is_clear(other)]:
                text += f" and than {_rival_words(report, gate, beaten)}"
        else:
            text += f", more than {nulls}, but {_why_unsure(gate, worst, arm.n)}"
        text += _rivals_unbeaten(report, gate)
    text += _elsewhere(report, gate)
    for use in report.usage:
        if use.arm == gate.arm and not use.is_exercised:
            text += f". {use.component} was used in {use.used} of {counted(use.n, 'question')} only"
    return f"{text}."


def _score_sentence(report: Report, arm: ArmPart, measure: str) -> str:
    part = arm.measures[measure]
    amount = _amount(report, measure, part.value)
    of = f"{amount} of {counted(arm.n, 'question')} {_interval(report, measure, part)}"
    name, _, cut = measure.partition("@")
    nouns = {"commit-files": ("file", "files"), "ticket-repos": ("repository", "repositories")}
    one, many = nouns.get(report.panel.kind, ("item", "items"))
    if name == "hit":
        among = "as its first answer" if cut == "1" else f"among its first {cut} answers"
        return f"{arm.name} finds a right {one} {among} for {of}"
    if name == "exact":
        return f"{arm.name} names exactly the right {many} for {of}"
    words = _MEASURE_WORDS.get(name, measure)
    cut_words = f" over its first {cut} answers" if cut else ""
    return (
        f"{arm.name} scores {amount} {_interval(report, measure, part)} on average in "
        f"{words}{cut_words}, over {counted(arm.n, 'question')}"
    )


def _is_counted(measure: str) -> bool:
    return measure.partition("@")[0] in ("hit", "exact")


def _amount(report: Report, measure: str, value: float) -> str:
    if not _is_counted(measure):
        return f"{value:.2f}"
    return f"{value * report.counts.tasks:.1f}".removesuffix(".0")


def _interval(report: Report, measure: str, part: MeasurePart) -> str:
    low, high = part.low, part.high
    if _is_counted(measure):
        n = report.counts.tasks
        return f"(95 %: {low * n:.0f}–{high * n:.0f})"
    return f"(95 %: {low:.2f}–{high:.2f})"


def _rivals_unbeaten(report: Report, gate: GatePart) -> str:
    text = ""
    losing = [other for other in gate.compared if other.arm in gate.beaten_by]
    if losing:
        text += f". Beaten by {_rival_words(report, gate, losing)}"
    open_ = [
        other for other in gate.compared if not _is_clear(other) and other.arm not in gate.beaten_by
    ]
    if open_:
        text += f". Not told apart from {_rival_words(report, gate, open_)}"
    return text


def _is_clear(other: AgainstPart) -> bool:
    return other.difference > 0 and other.p <= 0.025


def _rival_words(report: Report, gate: GatePart, others: list[AgainstPart]) -> str:
    return ", ".join(
        f"{other.arm} ({_amount(report, gate.measure, other.value or 0.0)})" for other in others
    )


def _why_unsure(gate: GatePart, worst: AgainstPart, n: int) -> str:
    lead = worst.difference * n
    if lead < gate.margin_tasks:
        why = (
            f"the lead over {worst.arm} is {lead:.1f}, below the registered margin of "
            f"{gate.margin_tasks:g}"
        )
    else:
        unsure = max(gate.against, key=lambda other: other.p)
        why = f"the lead over {unsure.arm} may be chance (p = {unsure.p:.3f}, 0.025 is needed)"
    if gate.mde_tasks is None:
        return f"{why}; so few questions cannot show any lead"
    return f"{why}; this panel can show a lead of {gate.mde_tasks:.1f} or more"


# --- the drawing --------------------------------------------------------------------------------


def _chart_lines(report: Report, *, width: int, is_ascii: bool) -> Iterator[Line]:
    measure = measure_names(report)[0]
    arms = sorted(
        report.arms, key=lambda arm: (arm.role == "null", -arm.measures[measure].value, arm.name)
    )
    values = {
        arm.name: "" if arm.is_withheld else _amount(report, measure, arm.measures[measure].value)
        for arm in arms
    }
    names = min(LONGEST_NAME, max(len(arm.name) for arm in arms), max(8, width // 3))
    numbers = max(len(value) for value in values.values())
    top = f"{measure}, 95 % interval"
    left = max(names + numbers + 9, len(top) + 2)
    plot = min(WIDEST_PLOT, width - left - 1)
    is_drawn = plot >= NARROWEST_PLOT
    left = left if is_drawn else names + numbers + 9
    most = report.counts.tasks if _is_counted(measure) else 1
    header = f"{top:{left}}{_axis(most, plot)}" if is_drawn else top
    yield Line(header, "dim", is_whole=True)
    for arm in arms:
        row = f"{cut_text(arm.name, names):{names}}  {values[arm.name]:>{numbers}}"
        row += f"  {'null' if arm.role == 'null' else '':4} "
        part = arm.measures[measure]
        if arm.is_withheld:
            drawn = withheld_word(report, arm)
            row = row if is_drawn else f"{cut_text(arm.name, names)}  "
        elif is_drawn:
            drawn = _whiskers(part, plot, is_ascii=is_ascii)
        else:
            drawn = _interval(report, measure, part).removeprefix("(95 %: ").removesuffix(")")
        yield Line(
            f"{row:{left if is_drawn or not arm.is_withheld else 0}}{drawn}".rstrip(),
            "dim" if arm.role == "null" else "",
            is_strong=arm.role == "candidate",
            is_whole=True,
        )


def _axis(most: int, columns: int) -> str:
    row = " " * columns
    first, *inner, last = _ticks(most)
    for tick in (first, last, *inner):  # where numbers would touch, the ends stay
        label = f"{tick}"
        middle = round(tick / most * (columns - 1))
        start = min(max(0, middle - (len(label) - 1) // 2), columns - len(label))
        end = start + len(label)
        if not row[max(0, start - 1) : end + 1].strip():
            row = row[:start] + label + row[end:]
    return row.rstrip()


def _ticks(most: int) -> list[float | int]:
    if most == 1:
        return [0, 0.25, 0.5, 0.75, 1]
    step = next(
        base * 10**power
        for power in range(12)
        for base in (1, 2, 5, 25)
        if base * 10**power * 5 >= most and (base != 25 or power > 0)
    )
    inner = [tick for tick in range(step, most, step) if tick <= most - step / 2]
    return [0, *inner, most]


def _whiskers(part: MeasurePart, columns: int, *, is_ascii: bool) -> str:
    left, dash, right, dot = "|-|o" if is_ascii else "├─┤●"
    low, at, high = (round(x * (columns - 1)) for x in (part.low, part.value, part.high))
    row = [" "] * columns
    row[low : high + 1] = dash * (high - low + 1)
    row[low], row[high] = left, right
    row[at] = dot
    return "".join(row)


# --- where it comes from, what to do next -------------------------------------------------------


def _panel_sentences(report: Report) -> Iterator[str]:
    panel = report.panel
    base = (
        f"@{panel.base[:7]}" if panel.base and re.fullmatch("[0-9a-f]{40,64}", panel.base) else ""
    )
    what = {"commit-files": "commit", "ticket-repos": "ticket"}.get(panel.kind, "task")
    left_out = panel.candidates - panel.solvable
    asked = report.counts.tasks
    if left_out:
        origin = f", {left_out} left out, {panel.solvable} solvable, {asked} asked."
    else:
        origin = ", all asked." if panel.solvable == asked else f", {asked} asked."
    yield f"{panel.name}{base}: {counted(panel.candidates, what)}{origin}"
    constant = report.production_nulls.get("constant")
    if report.others:
        return
    if constant is not None and asked < panel.solvable and _is_counted(report.primary):
        yield (
            f"One fixed answer is right for {constant:.0%} of all {panel.solvable}; the sample "
            "keeps every answer rare."
        )


def _next_lines(report: Report, options: str) -> Iterator[str]:
    run = report.run_id
    has_candidate = any(arm.role == "candidate" for arm in report.arms)
    match report.verdict:
        case "invalid" | "did_not_run":
            yield f"What failed: coldrun show {run}{options}"
        case "replayed":
            yield "To measure: run it again without --reuse"
        case "inconclusive":
            yield "To decide it: ask more tasks ([sample] size), or each more often (--trials)"
        case _ if not has_candidate:
            yield 'Ask your own tool the same: coldrun try REPO --arm "my-tool {query}"'
        case _:
            yield f"What it missed: coldrun show {run} --misses{options}"
    yield f"Details: coldrun report {run} --full{options}"
