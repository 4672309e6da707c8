"""`jsonl`: imported tasks, one JSON object a line, with the checks of mined ones.

    {"id": "t1", "query": "…", "gold": ["src/a.py"], "date": "2026-08-01"}
    {"id": "t2", "query": "…", "gold": [{"item": "a", "grade": 2, "provenance": "human"}]}

`id`, `query` and `gold` are needed; `answer` may repeat the panel's kind of answer; `date`,
`strata` (an object of texts, such as {"repo": "click"}) and `base` are optional. With `base`, a
commit that all lines name or none, each task is searched in its own tree; gold that is not there is
left out, and a task without any is dropped. Gold given as plain strings
has grade 1 and provenance "imported". No gold at all is an answer too where answers are sets. With
`repo` and `base` in the panel, gold must be in that tree.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import DROP_REASONS, AnswerKind, GoldItem, MinedPanel, Revision, Task
from coldrun.tasks.mine.commit_files import count_item_changes, list_items
from coldrun.tasks.mine.lines import Line, read_lines
from coldrun.tasks.mine.task_strata import describe_strata

_KEYS = ("id", "query", "gold", "answer", "date", "strata", "base")
_PROVENANCES = ("mined", "imported", "human")


def mine_jsonl(
    path: Path, spec: PanelConfig, *, repository: Repository | None = None
) -> MinedPanel:
    """Read the tasks at `path`, newest first, those without a date last, then by id."""
    lines = list(read_lines(path))
    is_per_task = any("base" in line.value for line in lines)
    base: Revision | None = None
    paths: dict[bytes, str] = {}
    if repository is not None:
        repository.refuse_incomplete()
        if not is_per_task:
            base = repository.resolve(spec.base or spec.head)
            paths = list_items(repository, base.tree)
    elif is_per_task:
        raise PanelError(f"{path} names a base for each task; give the panel its `repo`")
    corpus = None if base is None else frozenset(paths.values())
    tasks: list[Task] = []
    places: dict[str, str] = {}
    for line in lines:
        if is_per_task and "base" not in line.value:
            line.fail("`base` is missing, which other lines have; all tasks have one, or none")
        task = _parse_task(line, spec.answer_kind, corpus)
        if task.id in places:
            line.fail(f"id {task.id!r} twice, first at {places[task.id]}; ids must differ")
        places[task.id] = line.place
        tasks.append(task)
    if not tasks:
        raise PanelError(f"{path} has no tasks; write one JSON object a line")
    tasks.sort(key=lambda task: task.id)
    tasks.sort(key=lambda task: task.date or "", reverse=True)
    candidates, corpora = len(tasks), {} if base is None else {".": base}
    if repository is not None and is_per_task:
        tasks = _at_their_bases(tasks, repository)
        if tasks:
            corpora = {".": repository.resolve(tasks[-1].base or "")}
            paths = list_items(repository, corpora["."].tree)
            corpus = frozenset(paths.values())
    counts: dict[str, int] = {}
    if repository is not None and corpora:
        counts = count_item_changes(repository, corpora["."], paths)
    gold_items = {gold.item for task in tasks for gold in task.gold}
    drops = dict.fromkeys(DROP_REASONS, 0) | {"created_after_base": candidates - len(tasks)}
    return MinedPanel(
        tasks=tuple(tasks),
        drops=drops,
        candidates=candidates,
        base=base,
        head=None,
        corpora=corpora,
        items=tuple(sorted(gold_items if corpus is None else corpus)),
        change_counts=counts,
    )


def _at_their_bases(tasks: Sequence[Task], repository: Repository) -> list[Task]:
    """The tasks with the gold that their own base has; one without any is left out, and one whose
    base the repository lacks."""
    names = {task.base or "": "" for task in tasks}
    commits = {n: repository.resolve(n).commit if repository.has_commit(n) else n for n in names}
    places = [(commits[task.base or ""], gold.item) for task in tasks for gold in task.gold]
    is_there = dict(zip(places, repository.find_files(places), strict=True))
    found = []
    for task in tasks:
        commit = commits[task.base or ""]
        gold = tuple(each for each in task.gold if is_there[commit, each.item])
        strata = describe_strata(task.query, sorted(each.item for each in gold)) if gold else {}
        if gold:
            found.append(replace(task, base=commit, gold=gold, strata={**task.strata, **strata}))
    return found


def _parse_task(line: Line, answer: AnswerKind, corpus: Collection[str] | None) -> Task:
    line.check_keys(_KEYS, ("id", "query", "gold"))
    found = line.value.get("answer", answer)
    if found != answer:
        line.fail(
            f"`answer` is {found!r} but the panel's is {answer!r}; a panel has one kind of answer, "
            'set by `answer` in [panel] ("ranking" or "set")'
        )
    gold = _parse_gold(line, answer, corpus)
    query = line.text("query")
    items = sorted(item.item for item in gold)
    task_id = line.text("id")
    if not task_id.isprintable():
        line.fail(f"`id` has characters that cannot be printed: {task_id!r}")
    return Task(
        id=task_id,
        query=query,
        answer=answer,
        gold=gold,
        date=line.date("date"),
        base=line.text("base") if "base" in line.value else None,
        strata=_parse_strata(line)
        | (describe_strata(query, items) if corpus is not None and items else {}),
    )


def _parse_strata(line: Line) -> dict[str, str]:
    value = line.value.get("strata") or {}
    if not isinstance(value, dict) or not all(isinstance(part, str) for part in value.values()):
        line.fail(f"`strata` must be an object of texts, found {value!r}")
    return {
        line.check_text("strata", name): line.check_text("strata", part)
        for name, part in sorted(value.items())
    }


def _parse_gold(
    line: Line, answer: AnswerKind, corpus: Collection[str] | None
) -> tuple[GoldItem, ...]:
    value = line.value["gold"]
    if not isinstance(value, list):
        line.fail("`gold` must be a list of items")
    if not value and answer == "ranking":
        line.fail('`gold` is empty, which only `answer = "set"` allows')
    gold: dict[str, GoldItem] = {}
    for part in value:
        item = _parse_item(line, part)
        if item.item in gold:
            line.fail(f"gold item {item.item!r} twice")
        if corpus is not None and item.item not in corpus:
            line.fail(f"gold item {item.item!r} is not in the corpus; check `base` and the path")
        gold[item.item] = item
    return tuple(gold[item] for item in sorted(gold))


def _parse_item(line: Line, part: Any) -> GoldItem:
    if isinstance(part, str):
        part = {"item": part}
    if not isinstance(part, dict):
        line.fail(f"a gold item is a string or an object with `item`, found {part!r}")
    inner = Line(line.place, part)
    inner.check_keys(("item", "grade", "provenance"), ("item",))
    grade = part.get("grade", 1)
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not _is_grade(grade):
        line.fail(f"`grade` must be a number above 0, found {grade!r}")
    provenance = part.get("provenance", "imported")
    if provenance not in _PROVENANCES:
        line.fail(f"`provenance` must be one of {', '.join(_PROVENANCES)}, found {provenance!r}")
    return GoldItem(item=inner.text("item"), grade=float(grade), provenance=provenance)


def _is_grade(grade: float) -> bool:
    return 0 < grade <= sys.float_info.max
