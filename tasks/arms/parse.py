"""Reading the items out of an arm's raw answer: pure, and done at scoring time.

An answer that cannot be read is the tool's failure (`problem`, infra), never a silent zero: a
JSON path or a pattern that fits nothing is told apart from an honest empty result. How an answer
is wrapped is a matter of each kind of arm (`ArmKind.unwrap`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonpath_ng import Child, Fields, Root
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.filter import Filter
from jsonpath_ng.ext.parser import parse as parse_json_path

from coldrun.tasks.arms.answer_text import (
    MISSING,
    SHORT_TEXT,
    STATUS_FIELDS,
    MalformedError,
    UnreadableError,
    dump,
    field_texts,
    shorten,
)
from coldrun.tasks.arms.arm_kind import Unwrapped, kind_of
from coldrun.tasks.config import ArmConfig, ProcessArm
from coldrun.tasks.lib.git.path_text import encode_path
from coldrun.tasks.lib.records import AnswerKind

PLACE = re.compile(r"([^:]+):\d+(?::|$)")
"""A line of `grep -n` or `rg -n`: path, number, and what stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedAnswer:
    """The items of an answer, best first (or a set in the order given), without repeats.

    `problem` says why the answer could not be read; it makes the answer infra.
    """

    items: tuple[str, ...] = ()
    abstained: bool = False
    problem: str | None = None


def parse_answer(
    raw: str, arm: ArmConfig, *, answer: AnswerKind, corpus_dir: str | None
) -> ParsedAnswer:
    """The items that a raw answer names.

    Args:
        raw: The answer as the arm gave it: a protocol line, a program's output, the JSON of an
            MCP tool result, or the body of an HTTP response.
        arm: The arm's configuration; it says how its answers are read.
        answer: For a ranking, items are normalised to paths of the corpus, and nothing found is
            an abstention. For a set, items are plain names, and nothing found is the empty set.
        corpus_dir: The corpus folder that the session saw, for absolute paths.

    Returns:
        The items; or a `problem`, when the answer is malformed, does not fit the arm's `items` or
        `items_regex`, or names paths outside the corpus.
    """
    try:
        found = kind_of(arm).unwrap(raw, arm)
        if says_abstained(found):
            return ParsedAnswer(abstained=True)
        items = [_normalise(item, answer, corpus_dir) for item in read_items(found, arm)]
    except UnreadableError as problem:
        return ParsedAnswer(problem=str(problem))
    unique = tuple(dict.fromkeys(item for item in items if item))
    return ParsedAnswer(items=unique, abstained=answer == "ranking" and not unique)


def says_abstained(found: Unwrapped) -> bool:
    """Whether a line of the protocol abstains."""
    return found.form == "protocol" and found.documents[0].get("abstained") is True


def read_items(found: Unwrapped, arm: ArmConfig) -> list[str]:
    """The items of an answer as they stand in it: by pattern, by JSON path, as a JSON list
    (`items`, `paths` or bare), or one path a line.

    Raises:
        UnreadableError: The answer does not fit.
    """
    if found.form == "protocol" or not isinstance(arm, ProcessArm):
        return _protocol_items(found.documents[0])
    if arm.items_regex is not None:
        return _match_lines(found.texts or [dump(document) for document in found.documents], arm)
    if arm.items is not None:
        return _find_items(found.documents, arm, found.texts)
    listed = _listed_items(found)
    if listed is not None:
        return listed
    if found.form == "text":
        return _bare_paths("\n".join(found.texts), arm)
    raise UnreadableError(
        "the result has no `items` or `paths`; say how to read it with `items` (JSON path) or "
        f"`items_regex`; it begins {shorten(' '.join([*found.texts, *map(dump, found.documents)]))}"
    )


def _listed_items(found: Unwrapped) -> list[str] | None:
    """The first list of items among the documents; a JSON result may hold other lists as well."""
    for document in found.documents:
        if isinstance(document, dict) and ("items" in document or "paths" in document):
            return _protocol_items(document)
        if isinstance(document, list):
            is_plain = all(isinstance(item, str) for item in document)
            if is_plain or found.form == "text":
                return _protocol_items({"items": document})
    return None


def _protocol_items(line: dict[str, Any]) -> list[str]:
    items = line.get("items", MISSING)
    if items is MISSING:
        items = line.get("paths", MISSING)
    if not isinstance(items, list):
        raise MalformedError("the answer has neither a list `items` nor a list `paths`")
    names = []
    for item in items:
        name = item.get("path", item.get("item")) if isinstance(item, dict) else item
        if not isinstance(name, str):
            raise MalformedError(f"an item of the answer has no `path`: {shorten(str(item))}")
        names.append(name)
    return names


def _bare_paths(raw: str, arm: ProcessArm) -> list[str]:
    """One path a line, or `path:line:text` as grep prints it; prose is told apart from paths."""
    lines = [line.strip() for line in raw.splitlines() if line.strip()]
    places = [match[1] for line in lines if (match := PLACE.match(line))]
    plain = [line for line in lines if not re.search(r"\s", line) and not PLACE.match(line)]
    if len(places) > len(plain):
        return places
    if plain:
        return lines
    if _says_nothing_found([raw], arm):
        return []
    raise UnreadableError(
        "the output is prose, not one path a line; say how to read it with `items` (JSON path) or "
        f"`items_regex`; it begins {shorten(raw)}"
    )


def _find_items(documents: Sequence[Any], arm: ProcessArm, texts: Sequence[str]) -> list[str]:
    path = arm.items or ""
    try:
        whole, places = _compile_path(path)
    except (JSONPathError, ValueError) as error:
        raise UnreadableError(f"`items = {path!r}` is not a JSON path: {error}") from None
    is_honestly_empty = False
    for document in documents:
        values = [match.value for match in whole.find(document)]
        if values:
            return list(_flatten(values, path))
        is_honestly_empty |= any(_is_empty(place, document) for place in places)
    if is_honestly_empty:
        return []
    words = list(field_texts(documents, STATUS_FIELDS)) if documents else texts
    if (words or not documents) and _says_nothing_found(words, arm):
        return []
    if not documents:
        raise UnreadableError(
            f"`items = {path!r}` needs JSON, but the answer is text: {shorten(' '.join(texts))}"
        )
    raise UnreadableError(
        f"`items = {path!r}` fits nothing in the answer: {shorten(dump(documents[0]))}"
    )


@lru_cache(maxsize=64)
def _compile_path(path: str) -> tuple[Any, tuple[tuple[Any, bool], ...]]:
    """A JSON path, and the beginnings before each of its parts that may honestly find nothing;
    with each, whether that part is a filter."""
    whole = parse_json_path(path)
    parts = []
    node = whole
    while isinstance(node, Child):
        parts.append(node.right)
        node = node.left
    stem: Any = node if isinstance(node, (Root, Fields)) else Root()
    places = []
    for part in reversed(parts):
        if not isinstance(part, Fields) or "*" in part.fields:
            places.append((stem, isinstance(part, Filter)))
        stem = Child(stem, part)
    return whole, tuple(places or [(stem, False)])


def _is_empty(place: tuple[Any, bool], document: Any) -> bool:
    """Whether a place is there and holds nothing, or only what a filter kept back.

    A place that holds something, none of which fits, has another form than the path expects.
    """
    stem, is_filtered = place
    found = [match.value for match in stem.find(document)]
    return bool(found) and (is_filtered or not any(found))


def _flatten(values: Iterable[Any], path: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _flatten(value, path)
        elif value is not None:
            raise UnreadableError(
                f"`items = {path!r}` must lead to text, but found {shorten(dump(value))}"
            )


def _match_lines(texts: Sequence[str], arm: ProcessArm) -> list[str]:
    pattern = arm.items_regex or ""
    try:
        test = re.compile(pattern)
    except re.error as error:
        raise UnreadableError(f"`items_regex = {pattern!r}` is not a pattern: {error}") from None
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    matches = [match for line in lines if (match := test.search(line))]
    if lines and not matches and not _says_nothing_found(texts, arm):
        raise UnreadableError(
            f"no line of the answer fits `items_regex = {pattern!r}`: {shorten(' '.join(lines))}"
        )
    groups = [match.group(1) if test.groups else match.group() for match in matches]
    return [group for group in groups if group]


def _says_nothing_found(texts: Sequence[str], arm: ProcessArm) -> bool:
    text = "\n".join(texts)
    if not text.strip():
        return True
    return len(text) <= SHORT_TEXT and any(
        re.search(pattern, text, re.IGNORECASE) for pattern in arm.empty_patterns
    )


def _normalise(item: str, answer: AnswerKind, corpus_dir: str | None) -> str:
    if answer == "set":
        return _as_item(item.strip())
    text = item.removeprefix("file://").replace("\\", "/")
    path = ""
    while text := text.strip():
        path = posixpath.normpath(text)
        if path == text:
            break
        text = path
    if not text:
        return ""
    if path.startswith("/"):
        folder = None if corpus_dir is None else posixpath.normpath(corpus_dir)
        path = "/" + path.lstrip("/")
        if folder is None or not path.startswith(folder + "/"):
            raise UnreadableError(f"the answer names {item!r}, which is outside the corpus")
        path = path[len(folder) + 1 :]
    if path in (".", "..") or path.startswith("../"):
        raise UnreadableError(f"the answer names {item!r}, which is not a path in the corpus")
    return _as_item(path)


def _as_item(path: str) -> str:
    """The panel's text for a path; bytes that are not UTF-8 arrive as lone surrogates."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return encode_path(path.encode("utf-8", "surrogateescape"))
    return path
