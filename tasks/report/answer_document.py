"""The answers of a run one by one, and why one of them was executed or replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coldrun.tasks.judge.answer_rows import AnswerRow, count_arm_misses, discriminate
from coldrun.tasks.judge.misses import NAMES_GOLD
from coldrun.tasks.lib.plain_text import counted, cut_text
from coldrun.tasks.report.document import Block, Code, Heading, Line, Paragraph, listed
from coldrun.tasks.report.run_words import panel_words
from coldrun.tasks.run.key_differences import Explanation, OtherAnswer
from coldrun.tasks.run.run_record import RunRecord
from coldrun.tasks.stats.paired import minimum_detectable_effect

SHOWN_GOLD = 50
SHOWN_ITEMS = 8
"""Items of an answer that people see; more where the first right one comes later."""

SHOWN_TASKS = 12

SHOWN_VALUE = 160
"""Characters of a key component that are shown."""


def answers_title(record: RunRecord) -> Heading:
    """Whose answers are shown: run, panel, point, measure."""
    manifest = record.manifest
    point = manifest.point
    where = "no product" if point is None else f"point {point.commit[:12]}"
    return Heading(
        f"answers of run {manifest.run_id} · "
        f"{panel_words(manifest.name, manifest.panel_digest)} · {where} · "
        f"{counted(len(record.tasks), 'task')} at {manifest.config.primary}"
    )


def answer_blocks(rows: Sequence[AnswerRow], limit: int) -> Iterator[Block]:
    """What was asked, what was right and what was said, answer by answer; a + marks gold."""
    for row in rows[:limit]:
        yield Heading(_headline(row), level=3)
        yield Line(f"query: {' '.join(row.query.split())}")
        yield Line(("gold: ", *_quoted(row.gold)))
        if row.reason:
            yield Line(f"reason: {row.reason}")
        if row.items or row.status != "infra":
            yield Line("answer:" if row.items else "answer: (nothing)")
        shown = max(SHOWN_ITEMS, row.first_gold or 0)
        for rank, item in enumerate(row.items[:shown], 1):
            mark = "+ " if item in row.gold else "  "
            yield Line((mark, Code(item)), depth=1, number=rank)
        if len(row.items) > shown:
            yield Line(f"and {counted(len(row.items) - shown, 'more item')}")
    left = len(rows) - limit
    if left > 0:
        yield Paragraph(f"… {left} more; --limit {len(rows)} prints them")


def miss_lines(rows: Sequence[AnswerRow], primary: str) -> Iterator[Line]:
    """The misses of each arm, counted by class."""
    for arm, found in count_arm_misses(rows).items():
        asked = sum(row.arm == arm for row in rows)
        missed = sum(number for label, number in found.items() if label != NAMES_GOLD)
        yield Line(f"{arm}: {missed} of {counted(asked, 'answer')} missed at {primary}")
        for label, number in found.items():
            yield Line(f"{number:5d}  {miss_words(label)}", depth=1)


def _quoted(items: Sequence[str]) -> Iterator[str]:
    if not items:
        yield "(nothing)"
    for number, item in enumerate(items[:SHOWN_GOLD]):
        if number:
            yield ", "
        yield Code(item)
    if len(items) > SHOWN_GOLD:
        yield f" and {len(items) - SHOWN_GOLD} more"


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


# --- which tasks tell arms apart ------------------------------------------------------------------


def discrimination_lines(rows: Sequence[AnswerRow], primary: str) -> Iterator[str]:
    """The panel in sentences: who solved what, and the smallest effect that it can show."""
    found = discriminate(rows)
    tasks, arms = counted(found.tasks, "task"), counted(found.arms, "arm")
    yield f"{tasks}, {arms}, solved or not at {primary}"
    for what, ids in (
        ("solved by every arm", found.all_solve),
        ("solved by no arm", found.none_solve),
        ("solved by some", found.split),
    ):
        yield f"{len(ids)} {what}" + (f": {listed(ids, SHOWN_TASKS)}" if ids else "")
    observed = found.observed_discordance
    yield (
        f"largest possible discordance: {counted(found.possible_discordance, 'task')}"
        + ("" if observed is None else f"; the most that two arms differed on: {observed}")
    )
    effect = minimum_detectable_effect(found.tasks)
    yield (
        f"{tasks} cannot show any gain with 80 % power"
        if effect is None
        else f"smallest detectable effect with 80 % power: a net gain of {effect:.1f} tasks"
    )
    yield from (f"warning: {warning}" for warning in found.warnings)


# --- why an answer was executed or replayed -------------------------------------------------------


def why_document(found: Explanation) -> Iterator[Line]:
    """The explanation in sentences."""
    how = f"executed on {found.captured_at}"
    if found.evidence == "replayed":
        how = f"replayed from run {found.source_run_id}, where it was {how}"
    yield Line(f"{found.arm} on {found.task_id} in run {found.run_id}: {how}")
    if found.status == "infra":
        yield Line(f"the tool failed ({found.reason}): such an answer is never reused", depth=1)
    if not found.is_identified:
        yield Line(
            "its session was not sealed, so bytes outside the key may have decided it: such an "
            "answer is never reused",
            depth=1,
        )
    yield Line(("key ", Code(found.key)), depth=1)
    if not found.others:
        yield Line("no other run asked this question of this arm", depth=1)
    for other in found.others:
        yield Line(_other_words(other, is_identified=found.is_identified), depth=1)
        for difference in other.differences if other.status != "infra" else ():
            for where, value in (("here: ", difference.here), ("there:", difference.there)):
                shown = cut_text(value, SHOWN_VALUE)
                yield Line(f"{difference.component} {where} {shown}", depth=2)


def _other_words(other: OtherAnswer, *, is_identified: bool) -> str:
    head = f"run {other.run_id} ({other.evidence} {other.captured_at})"
    if other.status == "infra":
        return f"{head}: failed there, nothing to reuse"
    if other.differences:
        names = ", ".join(difference.component for difference in other.differences)
        return f"{head}: another key, {names} differ"
    if not is_identified:
        return f"{head}: same key, of a session that was not sealed"
    return f"{head}: same key, a hit for --reuse"
