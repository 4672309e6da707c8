"""Published benchmarks as tasks: SWE-bench, Loc-Bench, TREC, BEIR and inspect data sets. Pure.

Each reader takes rows or texts and gives tasks as lines of a `jsonl` panel, and why each other
sample left. Tasks of several repositories become one panel a repository, which is cloned when it is
frozen and searched at each task's own base.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.git.path_text import encode_path
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.mine.lines import normalise_date

Line = dict[str, Any]

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")

SHOWN = 5
"""Names that a note gives; the rest is counted."""


@dataclass(slots=True)
class Imported:
    """What was made of a benchmark: `samples == sum of lines + sum of drops`.

    `panels` has the lines of each repository, "" where there is none; `notes` are sentences for
    people.
    """

    samples: int = 0
    panels: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    drops: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)

    def add(self, line: Line, *, repository: str = "") -> None:
        """Take a task in, unless it has no gold, asks nothing, is not text that a panel can hold,
        or has the id of another one."""
        self.samples += 1
        text = "".join([line["id"], line["query"], *map(str, line["gold"])])
        if line["id"] in self._ids:
            self.drops["duplicate_id"] += 1
        elif not line["gold"]:
            self.drops["no_gold"] += 1
        elif not line["query"].strip():
            self.drops["empty_query"] += 1
        elif "\0" in text or not line["id"].isprintable() or _SURROGATE.search(text):
            self.drops["unreadable_text"] += 1
        else:
            self._ids.add(line["id"])
            self.panels[repository].append(line)


def import_patches(rows: Iterable[Mapping[str, Any]]) -> Imported:
    """SWE-bench and Loc-Bench: the files that the gold patch changes, at the base commit.

    Files that it creates are no gold, nor are those of `test_patch`; a renamed one counts under its
    earlier name. Rows without a patch have the files of `edit_functions` (`path:Class.function`).

    Raises:
        PanelError: A column is missing.
    """
    found = Imported()
    for number, row in enumerate(rows, start=1):
        _check_row(row, number)
        named = {str(each).partition(":")[0] for each in row.get("edit_functions") or ()}
        line = {
            "id": row["instance_id"],
            "query": row["problem_statement"],
            "gold": sorted(changed_files(row["patch"]) if row.get("patch") else named),
            "base": row["base_commit"],
            **_date(row.get("created_at")),
        }
        found.add(line, repository=row["repo"])
    return found


def _check_row(row: Mapping[str, Any], number: int) -> None:
    if not isinstance(row, Mapping):
        raise PanelError(f"row {number} is no object; write one JSON object a line")
    for name in ("instance_id", "repo", "base_commit", "problem_statement"):
        if not isinstance(row.get(name), str):
            raise PanelError(
                f"row {number}: no text in the column {name!r}; SWE-bench rows have "
                "instance_id, repo, base_commit, problem_statement and patch"
            )
    if not _REPOSITORY.fullmatch(row["repo"]):
        raise PanelError(f"row {number}: repo = {row['repo']!r} is not OWNER/NAME")
    functions = row.get("edit_functions")
    if not isinstance(row.get("patch"), str) and not isinstance(functions, list):
        raise PanelError(f"row {number}: neither `patch` nor a list `edit_functions`")
    if functions is not None and not isinstance(functions, list):
        raise PanelError(f"row {number}: `edit_functions` must be a list of PATH:NAME")


def _date(value: object) -> dict[str, str]:
    try:
        return {"date": normalise_date(str(value))}
    except (ValueError, OverflowError):
        return {}


def changed_files(patch: str) -> set[str]:
    """The files that were there before a patch in git's or diff's form, and that it changes."""
    found: set[str] = set()
    between = r"(?m)^diff --git " if "diff --git " in patch else r"(?m)^(?=--- .*\n\+\+\+ )"
    for block in re.split(between, patch):
        header, _, _ = block.partition("\n@@")
        if re.search(r"(?m)^(?:new file mode|copy from) ", header):
            continue
        renamed = re.search(r"(?m)^rename from (.*)$", header)
        if renamed:
            found.add(_unquote(renamed[1]))
            continue
        sources = re.findall(r"(?m)^--- (.*)$", header)
        if not sources and (match := re.match(r'("?a/.*?"?) "?b/', header)):
            sources = [match[1]]  # binary files and changes of mode have no other line
        names = (_unquote(source).removeprefix("a/") for source in sources[:1])
        found.update(name for name in names if name != "/dev/null")
    return found


def _unquote(text: str) -> str:
    text = text.partition("\t")[0].rstrip()
    if text.startswith('"') and text.endswith('"'):
        return encode_path(ast.literal_eval(f"b{text}"))
    return text


def import_judgements(
    topics: Mapping[str, str], judgements: Iterable[tuple[str, str, float]]
) -> Imported:
    """TREC and BEIR: texts of topics, and (topic, document, grade); a grade above 0 is relevant."""
    found = Imported()
    gold: dict[str, dict[str, float]] = defaultdict(dict)
    unknown: Counter[str] = Counter()
    below = 0
    for topic, document, grade in judgements:
        below += grade < 0
        if topic not in topics:
            unknown[topic] += 1
            continue
        gold[topic].pop(document, None)  # of repeated judgements the last one counts
        if grade > 0:
            gold[topic][document] = grade
    for topic, text in topics.items():
        items = [{"item": item, "grade": grade} for item, grade in sorted(gold[topic].items())]
        found.add({"id": topic, "query": text, "gold": items})
    if unknown:
        names = ", ".join(sorted(unknown)[:SHOWN])
        said = f"{counted(unknown.total(), 'judgement')} of {counted(len(unknown), 'topic')}"
        found.notes.append(f"{said} without a text: {names}")
    if below:
        found.notes.append(f"a grade below 0 counts as not relevant: {counted(below, 'judgement')}")
    return found


def read_topics(text: str) -> dict[str, str]:
    """The topics of a TREC file (`<top>`, `<num>`, `<title>`), or of lines `id<TAB>text`."""
    topics: dict[str, str] = {}
    for number, topic in enumerate(_topics(text), start=1):
        if topic is None or not topic[0]:
            raise PanelError(
                f"topic {number} has no number or no title; write <top> with <num> and <title>, or "
                "lines of an id, a tab and a text"
            )
        if topic[0] in topics:
            raise PanelError(f"topic {topic[0]!r} is there twice; ids must differ")
        topics[topic[0]] = topic[1]
    return topics


def read_queries(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The topics of BEIR's `queries.jsonl`: `_id` and `text`."""
    topics: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        if (
            not isinstance(row, Mapping)
            or not isinstance(row.get("text"), str)
            or not row.get("_id")
        ):
            raise PanelError(f"query {number} has no `_id` or no `text`")
        if str(row["_id"]) in topics:
            raise PanelError(f"query {row['_id']!r} is there twice; ids must differ")
        topics[str(row["_id"])] = row["text"]
    return topics


def _topics(text: str) -> Iterator[tuple[str, str] | None]:
    if "<top>" not in text:
        for line in filter(str.strip, text.splitlines()):
            name, tab, query = line.partition("\t")
            yield (name.strip(), query.strip()) if tab else None
        return
    for block in text.split("<top>")[1:]:
        number = re.search(r"<num>\s*(?:Number:)?\s*([^\s<]+)", block)
        title = re.search(r"<title>\s*(?:Topic:)?\s*([^<]*)", block)
        yield (number[1], " ".join(title[1].split())) if number and title else None


def read_judgements(text: str) -> Iterator[tuple[str, str, float]]:
    """The lines of a TREC qrels file (four columns), or of a BEIR one (three, with a header)."""
    for number, line in enumerate(text.splitlines(), start=1):
        columns = line.split("\t") if "\t" in line else line.split()
        if not columns or (number == 1 and columns[0] in ("query-id", "query_id")):
            continue
        try:
            topic, *_, document, grade = columns if len(columns) in (3, 4) else []
            value = float(grade)
            if not math.isfinite(value):
                raise ValueError(grade)
            yield topic, document, value
        except ValueError:
            raise PanelError(
                f"line {number} of the judgements is {line[:60]!r}; write `topic 0 document grade`"
            ) from None


def import_samples(samples: Iterable[Mapping[str, Any]]) -> Imported:
    """inspect: `input` (a text or messages) is the query, `target` (one or several) the gold."""
    found = Imported()
    for number, sample in enumerate(samples, start=1):
        if not isinstance(sample, Mapping):
            raise PanelError(f"sample {number} is no object")
        if sample.get("epoch") not in (None, 1):
            found.samples += 1
            found.drops["later_epoch"] += 1
            continue
        target = sample.get("target")
        gold = [str(each) for each in (target if isinstance(target, list) else [target or ""])]
        line = {
            "id": str(number if sample.get("id") is None else sample["id"]),
            "query": _asked(sample.get("input")),
            "gold": sorted(set(filter(str.strip, gold))),
        }
        found.add(line)
    return found


def _asked(value: object) -> str:
    if isinstance(value, str):
        return value
    texts: list[str] = []
    for message in value if isinstance(value, list) else []:
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            said = (part.get("text") for part in parts if isinstance(part, dict))
            texts += [text for text in said if isinstance(text, str)]
    return "\n\n".join(texts)
