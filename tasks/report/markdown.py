"""The report of a run as Markdown, and the Markdown that all reports are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from coldrun.tasks.judge.cost_model import CostsPart
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.judge.strata import production_lines, stratum_line, stratum_table
from coldrun.tasks.lib.plain_text import one_line
from coldrun.tasks.report import attribution_words, cost_words, run_words

_MARKS = re.compile(
    r"""
    (?P<own>`(?:(?:coldrun|git\ config|uv|pip\ install)\ [^`]+
      |changed|max_infra_share|panel\.gold_from|also|writes)`)
    | ^[-+#](?=[-+#\ ]|$)                         # a list, a heading, a rule
    | ^>                                        # a quote
    | ^\[(?=.*\]:|[ xX]\])                     # a definition, a box to tick
    | (?P<number>^\d+)(?P<after>[.)])(?=\ |$)   # a numbered list
    | \\(?=[!-/:-@\[-`{-~]|$)                   # a backslash that would escape something
    | [`~$]                                     # code, struck out, mathematics
    | (?P<stars>[*_]+)                          # emphasis
    | \](?P<link>[(\[])                         # a link
    | (?P<html>[<&])                            # a tag, an entity
    """,
    re.VERBOSE,
)
"""What Markdown would take for markup. `own` is what coldrun says itself: commands, and the names
of settings. As code they are as harmless where somebody else's text has them."""


def render_markdown(report: Report, *, stratum: str | None = None) -> str:
    """The same report as on the terminal, with full hashes.

    Raises:
        UsageError: The run has no such stratum.
    """
    return "\n".join(_lines(report, stratum))


def inert(text: str) -> str:
    """Text on one line that Markdown shows as it is: no markup, tag or link comes of it.

    Commands and settings in coldrun's own sentences are code, as they are written there.
    """
    flat = " ".join(one_line(text).split())
    return _MARKS.sub(lambda found: _defuse(found, flat), flat)


def code(text: str) -> str:
    """Text as a code span, whatever is in it."""
    flat = " ".join(one_line(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    pad = " " if flat[:1] in ("`", "") or flat[-1:] == "`" else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def bullets(lines: Iterable[str]) -> Iterator[str]:
    """Sentences as a list."""
    return (f"- {inert(line)}" for line in lines)


def outline(lines: Iterable[str]) -> Iterator[str]:
    """Sentences as a list, nested as they are indented, by two spaces a level."""
    for line in lines:
        depth = (len(line) - len(line.lstrip(" "))) // 2
        yield f"{'  ' * depth}- {inert(line)}"


def table_lines(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 2
) -> Iterator[str]:
    """A Markdown table; the first columns are text, the others numbers."""
    yield _row(headers)
    yield _row(["---" if number < text_columns else "---:" for number in range(len(headers))])
    for cells in rows:
        yield _row([inert(cell) for cell in cells])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _lines(report: Report, stratum: str | None) -> Iterator[str]:
    yield f"**{inert(run_words.first_line(report))}**"
    yield ""
    yield f"# {inert(report.panel.name)}: {report.verdict.replace('_', ' ')}"
    yield ""
    yield from bullets([run_words.verdict_line(report)])
    yield from (f"  - because {inert(reason)}" for reason in report.reasons)
    yield from bullets(
        [
            run_words.run_line(report),
            run_words.panel_line(report),
            run_words.distribution_line(report),
        ]
    )
    yield f"- panel {code(report.panel.digest)}"
    if report.panel.base:
        yield f"- base {code(report.panel.base)}, head {code(report.panel.head or '')}"
    if report.point:
        yield f"- point {code(report.point.commit)} of {code(report.point.repo)}"
        yield f"- tree {code(report.point.tree)}"
    yield from bullets(
        f"registered after the fact: {text}" for text in report.panel.changes_after_the_fact
    )
    yield ""
    yield from table_lines(
        run_words.arm_headers(report), (run_words.arm_cells(report, arm) for arm in report.arms)
    )
    yield ""
    yield from (f"- **{inert(run_words.headline(report, gate))}**" for gate in report.gates)
    for gate in (gate for gate in report.gates if gate.outcome != "refused"):
        yield ""
        yield inert(run_words.gate_line(report, gate))
        yield ""
        yield from table_lines(
            run_words.GATE_HEADERS,
            (
                run_words.gate_cells(part, report.counts.tasks)
                for part in [*gate.against, *gate.compared]
            ),
        )
    if report.ablations or report.usage:
        yield from _effect_lines(report)
    if report.costs is not None:
        yield from _cost_lines(report, report.costs)
    yield ""
    yield from bullets(run_words.cluster_lines(report))
    yield from bullets(run_words.sampling_lines(report))
    yield from bullets(production_lines(report))
    yield from bullets(run_words.bar_lines(report))
    yield from bullets(f"warning: {warning}" for warning in report.warnings)
    if stratum is not None:
        headers, rows = stratum_table(report, stratum)
        yield ""
        yield inert(stratum_line(report, stratum))
        yield ""
        yield from table_lines(headers, rows, text_columns=1)


def _effect_lines(report: Report) -> Iterator[str]:
    yield ""
    yield from bullets(attribution_words.lines(report))
    rows = list(attribution_words.effect_rows(report))
    if rows:
        yield ""
        yield inert(attribution_words.effects_line(report))
        yield ""
        yield from table_lines(attribution_words.EFFECT_HEADERS, rows)


def _cost_lines(report: Report, costs: CostsPart) -> Iterator[str]:
    yield ""
    yield inert(cost_words.USED_LINE)
    yield ""
    yield from table_lines(cost_words.USED_HEADERS, cost_words.used_rows(costs))
    yield ""
    yield inert(cost_words.cost_line(costs))
    yield ""
    yield from table_lines(
        cost_words.cost_headers(costs), cost_words.cost_rows(costs), text_columns=1
    )
    yield ""
    if costs.prices is not None:
        yield f"- prices {code(costs.prices.digest)} of {code(costs.prices.file)}"
    yield from bullets(cost_words.cost_notes(report, costs))
    rows = list(cost_words.pair_rows(report, costs))
    if rows:
        yield ""
        yield inert(cost_words.pair_line(report, costs))
        yield ""
        yield from table_lines(cost_words.PAIR_HEADERS, rows)
        yield ""
    yield from (f"- **{inert(line)}**" for line in cost_words.claim_lines(report, costs))


def _defuse(found: re.Match[str], text: str) -> str:
    if found["own"]:
        return found["own"]
    if found["html"]:
        return {"<": "&lt;", "&": "&amp;"}[found["html"]]
    if found["link"]:
        return f"]\\{found['link']}"
    if found["number"]:
        return f"{found['number']}\\{found['after']}"
    if found["stars"] and _is_idle(found["stars"], text[: found.start()], text[found.end() :]):
        return found["stars"]
    return "".join(f"\\{character}" for character in found[0])


def _is_idle(stars: str, before: str, after: str) -> bool:
    """Whether a run of stars or underscores means nothing where it stands."""
    if stars == "**":
        return not before[-1:].strip() and not after[:1].strip()
    return set(stars) == {"_"} and before[-1:].isalnum() and after[:1].isalnum()
