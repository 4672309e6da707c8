"""The answers of a run one by one: query, gold, answer, and why it missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coldrun.tasks.judge.answer_rows import AnswerRow, count_arm_misses
from coldrun.tasks.judge.misses import NAMES_GOLD
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.report.markdown import code, inert, outline
from coldrun.tasks.report.run_words import short_digest
from coldrun.tasks.run.run_record import RunRecord

SHOWN_ITEMS = 8
"""Items of an answer that people see; more where the first right one comes later."""


def answer_lines(row: AnswerRow) -> Iterator[str]:
    """One answer for people: what was asked, what was right, what was said."""
    yield _headline(row)
    yield f"  query   {_one_line(row.query)}"
    yield f"  gold    {', '.join(row.gold) or '(nothing)'}"
    if row.reason:
        yield f"  reason  {_one_line(row.reason)}"
    if row.items:
        shown, more = _shown_items(row)
        gold = set(row.gold)
        for rank, item in enumerate(shown, 1):
            label = "answer" if rank == 1 else ""
            yield f"  {label:6} {rank:3d} {'+' if item in gold else ' '} {item}"
        if more:
            yield f"             … {more} more"
    elif row.status != "infra":
        yield "  answer  (nothing)"


def miss_lines(rows: Sequence[AnswerRow], primary: str) -> Iterator[str]:
    """The misses of each arm, counted by class."""
    for arm, found in count_arm_misses(rows).items():
        asked = sum(row.arm == arm for row in rows)
        missed = sum(number for label, number in found.items() if label != NAMES_GOLD)
        yield f"{arm}: {missed} of {counted(asked, 'answer')} missed at {primary}"
        yield from (f"  {number:5d}  {miss_words(label)}" for label, number in found.items())


def run_title(record: RunRecord) -> str:
    """Whose answers are shown: run, panel, point, measure."""
    manifest = record.manifest
    point = manifest.point
    where = "no product" if point is None else f"point {point.commit[:12]}"
    return (
        f"answers of run {manifest.run_id} · panel {manifest.name} "
        f"{short_digest(manifest.panel_digest)} · {where} · {counted(len(record.tasks), 'task')} "
        f"at {manifest.config.primary}"
    )


def answers_markdown(
    title: str, missed: Sequence[str], rows: Sequence[AnswerRow], rest: Sequence[str]
) -> str:
    """Answers as Markdown: the counts, then a section for each answer, then what is left out."""
    # the counts are aligned by spaces, which are no levels
    counts = (f"  {line.strip()}" if line.startswith(" ") else line for line in missed)
    lines = [f"# {inert(title)}", "", *outline(counts)]
    for row in rows:
        lines += ["", *_answer_section(row)]
    return "\n".join([*lines, "", *map(inert, rest)])


def _answer_section(row: AnswerRow) -> Iterator[str]:
    yield f"### {inert(_headline(row))}"
    yield ""
    yield f"- query: {inert(row.query)}"
    yield f"- gold: {', '.join(map(code, row.gold)) or '(nothing)'}"
    if row.reason:
        yield f"- reason: {inert(row.reason)}"
    shown, more = _shown_items(row)
    if row.items or row.status != "infra":
        yield "- answer:" if row.items else "- answer: (nothing)"
    for rank, item in enumerate(shown, 1):
        yield f"  {rank}. {code(item)}{' **+**' if item in row.gold else ''}"
    if more:
        yield f"- and {more} more items"


def miss_words(label: str) -> str:
    """A class of misses as people read it."""
    if label.startswith("below_cut_"):
        first, _, last = label.removeprefix("below_cut_").partition("_")
        band = f"{first} or later" if last == "up" else f"{first} to {last}"
        return f"gold below the cut, at rank {band}"
    return {
        "missing": "no answer is there",
        "infra": "the tool itself failed",
        "unsolvable": "no answer could be right",
        "abstained": "abstained",
        "not_retrieved": "gold not retrieved",
        "part_of_gold": "only part of the gold, or other items with it",
        "too_many_items": "all of the gold, and more",
        "names_gold": "of these, the query names a gold file",
    }.get(label, label)


def _headline(row: AnswerRow) -> str:
    how = "hit" if row.miss is None else miss_words(row.miss)
    if row.miss is None and row.first_gold is not None:
        how = f"hit, first right item at rank {row.first_gold}"
    trial = f" trial {row.trial}" if row.trial else ""
    flag = ", the query names a gold file" if row.names_gold else ""
    return f"{row.task_id} · {row.arm}{trial}: {how}{flag}"


def _shown_items(row: AnswerRow) -> tuple[tuple[str, ...], int]:
    """The items that people see, and how many are left out."""
    shown = max(SHOWN_ITEMS, row.first_gold or 0)
    return row.items[:shown], max(0, len(row.items) - shown)


def _one_line(text: str) -> str:
    return " ".join(text.split())
