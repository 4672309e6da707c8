"""The sentences and cells of ablations, shared by terminal and Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.report.model import AblationPart, EffectPart, Report
from tasks.report.words import arm_named, p_words, withheld_word

EFFECT_HEADERS = [
    "from → to",
    "tasks",
    "n",
    "kept",
    "gained",
    "regressed",
    "neither",
    "tasks more",
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


def effects_line(report: Report) -> str:
    """What the table of effects below it shows."""
    family = sum(effect.p is not None for part in report.ablations for effect in part.effects)
    return (
        f"effects at {report.primary}, paired by task; p is two-sided, Holm is over the {family} "
        "effects printed:"
    )


def effect_rows(report: Report) -> Iterator[list[str]]:
    """The table of effects: of each ablation on all tasks, then where the component was used."""
    for part in report.ablations:
        for effect in part.effects:
            yield effect_cells(f"{part.of} → {part.arm}", part.component, effect)


def effect_cells(names: str, component: str | None, effect: EffectPart) -> list[str]:
    """One row of the table of effects."""
    where = {"all": "all", "used": f"with {component}", "unused": f"without {component}"}
    return [
        names,
        where[effect.tasks],
        str(effect.n),
        str(effect.kept),
        str(effect.gained),
        str(effect.regressed),
        str(effect.residual),
        "–" if effect.difference is None else f"{effect.difference * effect.n:+.1f}",
        ""
        if effect.low is None or effect.high is None
        else f"[{effect.low * effect.n:+.1f}, {effect.high * effect.n:+.1f}]",
        "–" if effect.p is None else p_words(effect.p),
        "" if effect.holm_p is None else p_words(effect.holm_p),
    ]
