"""The sentences and cells of ablations and uses, shared by terminal and Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from coldrun.tasks.judge.attribution_model import AblationPart, EffectPart, UsagePart
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.report.run_words import arm_named, interval_words, p_words, withheld_word

EFFECT_HEADERS = [
    "from → to",
    "tasks",
    "n",
    "kept",
    "gained",
    "regressed",
    "neither",
    "Δ tasks",
    "95 %",
    "p",
    "Holm",
]


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
    withheld = [name for name in (part.of, part.arm) if arm_named(report, name).is_withheld]
    if withheld:
        word = withheld_word(report, arm_named(report, withheld[0]))
        return f"{line}; {withheld[0]}: {word}, so no effect is told"
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


def lines(report: Report) -> Iterator[str]:
    """What stands above the table of effects."""
    yield from (usage_line(part) for part in report.usage)
    yield from (ablation_line(report, part) for part in report.ablations)


def effects_line(report: Report) -> str:
    """What the table of effects below it shows."""
    effects = [effect for part in report.ablations for effect in part.effects]
    effects += [
        effect for part in report.usage for other in part.against for effect in other.effects
    ]
    family = sum(effect.p is not None for effect in effects)
    return (
        f"effects at {report.primary}, paired by task; p is two-sided, Holm is over the "
        f"{counted(family, 'effect')} printed:"
    )


def effect_rows(report: Report) -> Iterator[list[str]]:
    """The table of effects: of each ablation on all tasks, then where the component was used; of
    each component against arms without it."""
    for part in report.ablations:
        for effect in part.effects:
            yield effect_cells(f"{part.of} → {part.arm}", part.component, effect)
    for use in report.usage:
        for other in use.against:
            for effect in other.effects:
                yield effect_cells(f"{other.arm} → {use.arm}", use.component, effect)


def effect_cells(names: str, component: str | None, effect: EffectPart) -> list[str]:
    """One row of the table of effects."""
    where = {"all": "all", "used": f"{component} used", "unused": f"{component} not used"}
    return [
        names,
        where[effect.tasks],
        str(effect.n),
        str(effect.kept),
        str(effect.gained),
        str(effect.regressed),
        str(effect.residual),
        "–" if effect.difference is None else f"{effect.difference * effect.n:+.1f}",
        interval_words(effect.low, effect.high, effect.n),
        "–" if effect.p is None else p_words(effect.p),
        "" if effect.holm_p is None else p_words(effect.holm_p),
    ]
