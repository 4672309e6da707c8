"""A tool that has failed, or was misread, and says so with a success status."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence

from coldrun.tasks.arms.answer_text import (
    ERROR_FIELDS,
    SHORT_TEXT,
    STATUS_FIELDS,
    UnreadableError,
    field_texts,
    shorten,
)
from coldrun.tasks.arms.arm_kind import Unwrapped, kind_of
from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.parse import ParsedAnswer, read_items, says_abstained
from coldrun.tasks.config import ProcessArm


def find_failure(raw: str, arm: ProcessArm, *, echoes: Sequence[str] = ()) -> str | None:
    """The tool's own words of failure in an answer that claims success; None without any.

    A found code line may contain "timed out" and still be a good result, so the patterns are held
    against the words of the tool alone: fields named `error` or `errors`; and, only where no item
    could be read, fields such as `message` and `status`, or the text of a short answer. What the
    tool merely repeats from the question (`echoes`) is left out first.

    Raises:
        MalformedError: The answer does not have the form of its kind.
    """
    found = kind_of(arm).unwrap(raw, arm)
    words = list(field_texts(found.documents, ERROR_FIELDS))
    if not _has_items(found, arm):
        texts = () if found.documents else found.texts
        said_instead = (*field_texts(found.documents, STATUS_FIELDS), *texts)
        words += [text for text in said_instead if len(text) <= SHORT_TEXT]
    tests = [re.compile(pattern, re.IGNORECASE) for pattern in arm.infra_patterns]
    for text in words:
        said = _without(text, echoes)
        if any(test.search(said) for test in tests):
            return " ".join(text.split())[:300]
    return None


def _has_items(found: Unwrapped, arm: ProcessArm) -> bool:
    if says_abstained(found):
        return False
    try:
        return any(item.strip() for item in read_items(found, arm))
    except UnreadableError:
        return False


def find_misreading(
    parsed: ParsedAnswer, arm: ProcessArm, context: SessionContext, corpus_dir: str | None
) -> str | None:
    """What shows that an answer was misread: it names items, and the corpus has none of them.

    A wrong pattern, or a search of another folder, would otherwise score zero like a bad ranking.
    None for sets, without a corpus, and for arms that may name new files.
    """
    if context.answer == "set" or corpus_dir is None or arm.items_may_be_new:
        return None
    items = parsed.items
    # An escaped name (%) is not that of a file.
    if not items or any("%" in item or os.path.lexists(f"{corpus_dir}/{item}") for item in items):
        return None
    return (
        "the answer names no file of the corpus; `items` or `items_regex` say how to read it; what "
        f"was read first is {shorten(items[0])}"
    )


def _without(text: str, echoes: Sequence[str]) -> str:
    for echo in sorted((echo for echo in echoes if len(echo) > 2), key=len, reverse=True):
        for form in (echo, json.dumps(echo)[1:-1], json.dumps(echo, ensure_ascii=False)[1:-1]):
            text = re.sub(re.escape(form), " … ", text, flags=re.IGNORECASE)
    return text
