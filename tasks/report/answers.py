"""The answers of a run one by one: query, gold, answer, and why it missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coldrun.tasks.analyse.measures import parse_measure
from coldrun.tasks.analyse.measures.ranks import find_first_rank
from coldrun.tasks.analyse.misses import NAMES_GOLD, classify_miss, names_gold
from coldrun.tasks.analyse.score_table import Answered
from coldrun.tasks.config import ArmConfig, Config
from coldrun.tasks.errors import UsageError
from coldrun.tasks.plain import counted
from coldrun.tasks.records import Task
from coldrun.tasks.report.markdown import code, inert, outline
from coldrun.tasks.report.scored import ParseAnswer, read_capture
from coldrun.tasks.report.words import short_digest
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.record import RunRecord

SHOWN_ITEMS = 8
"""Items of an answer that people see; more where the first right one comes later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One planned answer of one arm.

    `status` is `answered`, `abstained`, `infra` or `missing`. `first_gold` is the rank of the
    first right item, None without one. `score` is at the primary measure; a failure scores 0.
    `miss` is the class of a miss, None for a hit. `names_gold` says that the query names a gold
    path or its basename.
    """

    task_id: str
    arm: str
    trial: int
    status: str
    evidence: str | None
    query: str
    date: str | None
    gold: tuple[str, ...]
    items: tuple[str, ...]
    first_gold: int | None
    score: float
    miss: str | None
    names_gold: bool
    reason: str | None

    def to_values(self) -> dict[str, Any]:
        """The row as JSON values."""
        return asdict(self)


def list_answers(
    record: RunRecord,
    parse: ParseAnswer,
    *,
    arm: str | None = None,
    task_id: str | None = None,
) -> list[AnswerRow]:
    """Every planned answer of a run, by task in panel order, then by arm as configured.

    Raises:
        UsageError: The run has no such arm or task.
    """
    config = record.manifest.config
    arms = [found for found in config.arms if arm in (None, found.name)]
    tasks = [task for task in record.tasks if task_id is None or task.id.startswith(task_id)]
    if not arms:
        known = ", ".join(found.name for found in config.arms)
        raise UsageError(
            f"run {record.manifest.run_id} has no arm {arm!r}; it has {known} (nulls are "
            "computed, they have no answers)"
        )
    if not tasks:
        raise UsageError(
            f"run {record.manifest.run_id} has no task {task_id!r}; its {len(record.tasks)} tasks "
            f"have ids such as {record.tasks[0].id}"
        )
    captures = {(c.task_id, c.arm, c.trial): c for c in record.captures}
    return [
        _row(task, found, trial, captures.get((task.id, found.name, trial)), config, parse)
        for task in tasks
        for found in arms
        for trial in range(record.manifest.trials[found.name])
    ]


def count_arm_misses(rows: Sequence[AnswerRow]) -> dict[str, dict[str, int]]:
    """The counts of miss classes by arm, in answers, the largest class first."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        counts = found.setdefault(row.arm, Counter())
        if row.miss is not None:
            counts[row.miss] += 1
    named = Counter(row.arm for row in rows if row.miss is not None and row.names_gold)
    return {
        arm: dict(counts.most_common()) | ({NAMES_GOLD: named[arm]} if named[arm] else {})
        for arm, counts in found.items()
    }


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


def _row(
    task: Task,
    arm: ArmConfig,
    trial: int,
    capture: Capture | None,
    config: Config,
    parse: ParseAnswer,
) -> AnswerRow:
    measure = parse_measure(config.primary)
    answered = None
    if capture is not None:
        answered = read_capture(capture, arm, config.panel.answer_kind, parse)
    miss = classify_miss(answered, task, measure)
    items = () if answered is None else answered.items
    score = 0.0
    if answered is not None and not answered.is_infra:
        score = measure.score(items, task.gold_grades) or 0.0
    return AnswerRow(
        task_id=task.id,
        arm=arm.name,
        trial=trial,
        status=_status(capture, answered),
        evidence=None if capture is None else capture.evidence,
        query=task.query,
        date=task.date,
        gold=task.shape,
        items=items,
        first_gold=find_first_rank(items, set(task.shape)),
        score=score,
        miss=None if miss is None else miss.label,
        names_gold=names_gold(task),
        reason=capture.reply.reason if capture is not None else None,
    )


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


def _status(capture: Capture | None, answered: Answered | None) -> str:
    if capture is None or answered is None:
        return "missing"
    return "infra" if answered.is_infra else capture.reply.status


def _one_line(text: str) -> str:
    return " ".join(text.split())
