"""A tool that has failed and says so with a success status."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from coldrun.tasks.arms.answer_parts import answer_parts
from coldrun.tasks.arms.answer_text import (
    ERROR_FIELDS,
    SHORT_TEXT,
    STATUS_FIELDS,
    field_texts,
    shorten,
)
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.config import ProcessArm
from coldrun.tasks.lib.records import AnswerKind


def find_failure(
    raw: str,
    arm: ProcessArm,
    *,
    echoes: Sequence[str] = (),
    patterns: Sequence[str] | None = None,
) -> str | None:
    """The tool's own words of failure in an answer that claims success; None when there are none.

    A found code line may contain "timed out" and still be a good result, so the patterns are held
    against the words of the tool alone: fields named `error` or `errors`; and, only where not one
    item could be read, fields such as `message` and `status`, or the text of a short answer. What
    the tool merely repeats from the question (`echoes`) is left out first.
    """
    tests = [
        re.compile(pattern, re.IGNORECASE)
        for pattern in (arm.infra_patterns if patterns is None else patterns)
    ]
    documents, texts = answer_parts(raw, arm)
    words = list(field_texts(documents, ERROR_FIELDS))
    if not parse_answer(raw, arm, answer="set", corpus_dir=None).items:
        said_instead = [*field_texts(documents, STATUS_FIELDS), *(() if documents else texts)]
        words += [text for text in said_instead if len(text) <= SHORT_TEXT]
    for text in words:
        said = _without(text, echoes)
        if any(test.search(said) for test in tests):
            return " ".join(text.split())[:300]
    return None


def find_misreading(
    raw: str, arm: ProcessArm, *, answer: AnswerKind, corpus_dir: str | None
) -> str | None:
    """What shows that an answer was not read rightly: it names items, and the corpus has none.

    A wrong pattern, or a search of another folder, would otherwise score zero like a bad ranking.
    None for sets, without a corpus, and for arms that may name new files.
    """
    if answer == "set" or corpus_dir is None or arm.items_may_be_new:
        return None
    items = parse_answer(raw, arm, answer=answer, corpus_dir=corpus_dir).items
    # An escaped name (%) is not that of a file.
    if not items or any("%" in item or _is_there(Path(corpus_dir), item) for item in items):
        return None
    return (
        "the answer names no file of the corpus; `items` or `items_regex` say how to read it; what "
        f"was read first is {shorten(items[0])}"
    )


def _is_there(folder: Path, name: str) -> bool:
    try:
        (folder / name).lstat()
    except (OSError, ValueError):
        return False
    return True


def _without(text: str, echoes: Sequence[str]) -> str:
    for echo in sorted((echo for echo in echoes if len(echo) > 2), key=len, reverse=True):
        for form in (echo, json.dumps(echo)[1:-1], json.dumps(echo, ensure_ascii=False)[1:-1]):
            text = re.sub(re.escape(form), " … ", text, flags=re.IGNORECASE)
    return text
