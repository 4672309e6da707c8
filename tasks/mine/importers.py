"""Published benchmarks as tasks: SWE-bench, Loc-Bench, TREC, BEIR and inspect data sets. Pure.

Each reader takes rows or texts and gives tasks as lines of a `jsonl` panel, and why each other
sample left. Tasks of several repositories become one panel a repository, which is cloned when it is
frozen and searched at each task's own base.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.git.path_text import encode_path
from coldrun.tasks.mine.lines import normalise_date

Line = dict[str, Any]

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
        """Take a task in, unless it has no gold, asks nothing, or has the id of another one."""
        self.samples += 1
        if line["id"] in self._ids:
            self.drops["duplicate_id"] += 1
        elif not line["gold"]:
            self.drops["no_gold"] += 1
        elif not line["query"].strip():
            self.drops["empty_query"] += 1
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
        for name in ("instance_id", "repo", "base_commit", "problem_statement"):
            if not isinstance(row.get(name), str):
                raise PanelError(
                    f"row {number}: no text in the column {name!r}; SWE-bench rows have "
                    "instance_id, repo, base_commit, problem_statement and patch"
                )
        functions = row.get("edit_functions")
        named = {str(each).partition(":")[0] for each in functions if each} if functions else set()
        line = {
            "id": row["instance_id"],
            "query": row["problem_statement"],
            "gold": sorted(changed_files(row.get("patch") or "") or named),
            "base": row["base_commit"],
            **_date(row.get("created_at")),
        }
        found.add(line, repository=row["repo"])
    return found


def _date(value: object) -> dict[str, str]:
    try:
        return {"date": normalise_date(str(value))}
    except (ValueError, OverflowError):
        return {}


def changed_files(patch: str) -> set[str]:
    """The files that were there before a patch in git's or diff's form, and that it changes."""
    found: set[str] = set()
    for block in re.split(r"(?m)^diff --git ", patch) if "diff --git " in patch else [patch]:
        header, _, _ = block.partition("\n@@")
        if re.search(r"(?m)^(?:new file mode|copy from) ", header):
            continue
        sources = re.findall(r"(?m)^(?:---|rename from) (.*)$", header)
        if not sources and (match := re.match(r'("?a/.*?"?) "?b/', header)):
            sources = [match[1]]  # binary files and changes of mode have no other line
        found.update(path for source in sources[:1] if (path := _unquote(source)) != "/dev/null")
    return found


def _unquote(text: str) -> str:
    text = text.partition("\t")[0].rstrip()
    if text.startswith('"') and text.endswith('"'):
        text = encode_path(ast.literal_eval(f"b{text}"))
    return text.removeprefix("a/")


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
        elif grade > 0:
            gold[topic][document] = grade
    for topic, text in topics.items():
        items = [{"item": item, "grade": grade} for item, grade in sorted(gold[topic].items())]
        found.add({"id": topic, "query": text, "gold": items})
    if unknown:
        names = ", ".join(sorted(unknown)[:SHOWN])
        found.notes.append(
            f"{unknown.total()} judgements of {len(unknown)} topics that have no text: {names}"
        )
    if below:
        found.notes.append(f"{below} judgements have a grade below 0 and count as not relevant")
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
        columns = line.split()
        if not columns or (number == 1 and columns[0] in ("query-id", "query_id")):
            continue
        try:
            topic, *_, document, grade = columns if len(columns) in (3, 4) else []
            yield topic, document, float(grade)
        except ValueError:
            raise PanelError(
                f"line {number} of the judgements is {line[:60]!r}; write `topic 0 document grade`"
            ) from None


def import_samples(samples: Iterable[Mapping[str, Any]]) -> Imported:
    """inspect: `input` (a text or messages) is the query, `target` (one or several) the gold."""
    found = Imported()
    for number, sample in enumerate(samples, start=1):
        if int(sample.get("epoch") or 1) > 1:
            continue  # the same sample, asked again
        target = sample.get("target") or []
        gold = [target] if isinstance(target, str) else list(map(str, target))
        line = {
            "id": str(sample.get("id") or number),
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
