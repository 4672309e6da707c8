"""Reading the items out of an arm's raw answer: pure, and done at scoring time.

An answer that cannot be read is the tool's failure (`problem`, infra), never a silent zero: a
JSON path or a pattern that fits nothing is told apart from an honest empty result.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonpath_ng import Child, Fields, Root
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse as parse_json_path

from tasks.config import Bm25Arm, CommandArm, GrepArm, McpArm, ProcessArm
from tasks.git.paths import encode_path
from tasks.records import AnswerKind

FENCED = re.compile(r"```[\w.+-]*\n(.*?)```", re.DOTALL)
MISSING = object()
SHORT_TEXT = 2000
"""Longer text is a result, in which words such as "timed out" may be found code."""

ERROR_FIELDS = ("error", "errors")
STATUS_FIELDS = ("message", "status", "detail", "reason", "info", "warning", "result", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedAnswer:
    """The items of an answer, best first (or a set in the order given), without repeats.

    `problem` says why the answer could not be read; it makes the answer infra.
    """

    items: tuple[str, ...] = ()
    abstained: bool = False
    problem: str | None = None


class _ProblemError(Exception):
    """An answer that cannot be read; the text says why."""


def parse_answer(
    raw: str,
    arm: GrepArm | Bm25Arm | CommandArm | McpArm,
    *,
    answer: AnswerKind,
    corpus_dir: str | None,
) -> ParsedAnswer:
    """The items that a raw answer names.

    Args:
        raw: The answer as the arm gave it: a protocol line, a program's output, or the JSON of an
            MCP tool result.
        arm: The arm's configuration; it says how its answers are read.
        answer: For a ranking, items are normalised to paths of the corpus, and nothing found is
            an abstention. For a set, items are plain names, and nothing found is the empty set.
        corpus_dir: The corpus folder that the session saw, for absolute paths.

    Returns:
        The items; or a `problem`, when the answer is malformed, does not fit the arm's `items` or
        `items_regex`, or names paths outside the corpus.
    """
    try:
        if isinstance(arm, McpArm):
            found = _read_tool_result(raw, arm)
        elif isinstance(arm, CommandArm) and arm.mode == "per-task":
            found = _read_output(raw, arm)
        else:
            line = read_protocol_line(raw)
            if line.get("abstained") is True:
                return ParsedAnswer(abstained=True)
            found = protocol_items(line)
        items = [_normalise(item, answer, corpus_dir) for item in found]
    except _ProblemError as problem:
        return ParsedAnswer(problem=str(problem))
    unique = tuple(dict.fromkeys(item for item in items if item))
    return ParsedAnswer(items=unique, abstained=answer == "ranking" and not unique)


def find_failure(
    raw: str,
    arm: CommandArm | McpArm,
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
    documents, texts = _answer_parts(raw, arm)
    words = list(_field_texts(documents, ERROR_FIELDS))
    if not parse_answer(raw, arm, answer="set", corpus_dir=None).items:
        said_instead = [*_field_texts(documents, STATUS_FIELDS), *(() if documents else texts)]
        words += [text for text in said_instead if len(text) <= SHORT_TEXT]
    for text in words:
        said = _without(text, echoes)
        if any(test.search(said) for test in tests):
            return " ".join(text.split())[:300]
    return None


def read_protocol_line(raw: str | bytes) -> dict[str, Any]:
    """A line of the JSON Lines protocol. Raises ValueError when it is not a JSON object."""
    try:
        value = json.loads(raw)
    except ValueError:
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
        raise _MalformedError(f"expected a JSON object, found {_shorten(text)}") from None
    if not isinstance(value, dict):
        raise _MalformedError(f"expected a JSON object, found {_shorten(str(value))}")
    return value


class _MalformedError(_ProblemError, ValueError):
    """A protocol line that is not one."""


def protocol_items(line: dict[str, Any]) -> list[str]:
    """The items of an answer in the protocol's form. Raises ValueError when it has none."""
    items = line.get("items", MISSING)
    if items is MISSING:
        items = line.get("paths", MISSING)
    if not isinstance(items, list):
        raise _MalformedError("the answer has neither a list `items` nor a list `paths`")
    names = []
    for item in items:
        name = item.get("path", item.get("item")) if isinstance(item, dict) else item
        if not isinstance(name, str):
            raise _MalformedError(f"an item of the answer has no `path`: {_shorten(str(item))}")
        names.append(name)
    return names


def _read_output(raw: str, arm: ProcessArm) -> list[str]:
    """The items of a program's output: by JSON path, by pattern, or one path a line."""
    if arm.items_regex is not None:
        return _match_lines([raw], arm)
    documents = list(_documents([raw]))
    if arm.items is not None:
        return _find_items(documents, arm, [raw])
    for document in documents:
        if isinstance(document, dict) and ("items" in document or "paths" in document):
            return protocol_items(document)
        if isinstance(document, list):
            return protocol_items({"items": document})
    return _bare_paths(raw, arm)


def _bare_paths(raw: str, arm: ProcessArm) -> list[str]:
    """One path a line, for a program without a parser; prose is told apart from paths."""
    lines = [line.strip() for line in raw.splitlines() if line.strip()]
    if any(not re.search(r"\s", line) for line in lines):
        return lines
    if _says_nothing_found([raw], arm):
        return []
    raise _ProblemError(
        "the output is prose, not one path a line; say how to read it with `items` (JSON path) or "
        f"`items_regex`; it begins {_shorten(raw)}"
    )


def _read_tool_result(raw: str, arm: McpArm) -> list[str]:
    """The items of an MCP tool result: from its structured content, else from its text."""
    documents, texts = _answer_parts(raw, arm)
    if arm.items_regex is not None:
        structured = [_dump(document) for document in documents] if not texts else []
        return _match_lines([*texts, *structured], arm)
    if arm.items is not None:
        return _find_items(documents, arm, texts)
    for document in documents:
        if isinstance(document, dict) and ("items" in document or "paths" in document):
            return protocol_items(document)
        if isinstance(document, list) and all(isinstance(item, str) for item in document):
            return list(document)
    raise _ProblemError(
        "the result has no `items` or `paths`; say how to read it with `items` (JSON path) or "
        f"`items_regex`; it begins {_shorten(' '.join(texts) or raw)}"
    )


def _answer_parts(raw: str, arm: CommandArm | McpArm) -> tuple[list[Any], list[str]]:
    """The JSON documents and the texts of an answer."""
    if not isinstance(arm, McpArm):
        return list(_documents([raw])), [raw]
    result = read_protocol_line(raw)
    texts = [
        block["text"]
        for block in result.get("content") or []
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    documents = []
    structured = result.get("structuredContent")
    if structured is not None:
        documents.append(structured)
        # The SDK wraps what is no object as {"result": …}, text that holds JSON included.
        if isinstance(structured, dict) and structured.keys() == {"result"}:
            inner = structured["result"]
            documents += _documents([inner]) if isinstance(inner, str) else [inner]
    documents += _documents(texts)
    return documents, texts


def _documents(texts: Iterable[str]) -> Iterator[Any]:
    """JSON in texts: the whole text, else its lines where each is JSON, else its fenced blocks."""
    for text in texts:
        whole = _load(text)
        if whole is not MISSING:
            yield whole
            continue
        lines = [_load(line) for line in text.splitlines() if line.strip()]
        if lines and all(isinstance(line, (dict, list)) for line in lines):
            yield lines
            continue
        for block in FENCED.findall(text):
            document = _load(block)
            if document is not MISSING:
                yield document


def _load(text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return MISSING
    try:
        return json.loads(stripped)
    except ValueError:
        return MISSING


def _find_items(documents: Sequence[Any], arm: ProcessArm, texts: Sequence[str]) -> list[str]:
    path = arm.items or ""
    try:
        whole, stem = _compile_path(path)
    except (JSONPathError, ValueError) as error:
        raise _ProblemError(f"`items = {path!r}` is not a JSON path: {error}") from None
    is_honestly_empty = False
    for document in documents:
        values = [match.value for match in whole.find(document)]
        if values:
            return list(_flatten(values, path))
        is_honestly_empty = is_honestly_empty or bool(stem.find(document))
    if is_honestly_empty:
        return []
    words = list(_field_texts(documents, STATUS_FIELDS)) if documents else texts
    if (words or not documents) and _says_nothing_found(words, arm):
        return []
    if not documents:
        raise _ProblemError(
            f"`items = {path!r}` needs JSON, but the answer is text: {_shorten(' '.join(texts))}"
        )
    raise _ProblemError(
        f"`items = {path!r}` fits nothing in the answer: {_shorten(_dump(documents[0]))}"
    )


@lru_cache(maxsize=64)
def _compile_path(path: str) -> tuple[Any, Any]:
    """A JSON path, and its beginning up to the first part that may honestly find nothing."""
    whole = parse_json_path(path)
    parts = []
    node = whole
    while isinstance(node, Child):
        parts.append(node.right)
        node = node.left
    stem: Any = node if isinstance(node, (Root, Fields)) else Root()
    for part in reversed(parts):
        if not isinstance(part, Fields) or "*" in part.fields:
            break
        stem = Child(stem, part)
    return whole, stem


def _flatten(values: Iterable[Any], path: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _flatten(value, path)
        elif value is not None:
            raise _ProblemError(
                f"`items = {path!r}` must lead to text, but found {_shorten(_dump(value))}"
            )


def _match_lines(texts: Sequence[str], arm: ProcessArm) -> list[str]:
    pattern = arm.items_regex or ""
    try:
        test = re.compile(pattern)
    except re.error as error:
        raise _ProblemError(f"`items_regex = {pattern!r}` is not a pattern: {error}") from None
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    matches = [match for line in lines if (match := test.search(line))]
    if lines and not matches and not _says_nothing_found(texts, arm):
        raise _ProblemError(
            f"no line of the answer fits `items_regex = {pattern!r}`: {_shorten(' '.join(lines))}"
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
        return item.strip()
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
            raise _ProblemError(f"the answer names {item!r}, which is outside the corpus")
        path = path[len(folder) + 1 :]
    if path in (".", "..") or path.startswith("../"):
        raise _ProblemError(f"the answer names {item!r}, which is no path in the corpus")
    return _as_item(path)


def _as_item(path: str) -> str:
    """The panel's text for a path; bytes that are not UTF-8 arrive as lone surrogates."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return encode_path(path.encode("utf-8", "surrogateescape"))
    return path


def _field_texts(documents: Iterable[Any], names: Sequence[str]) -> Iterator[str]:
    for document in documents:
        if isinstance(document, dict):
            for name in names:
                value = document.get(name)
                if isinstance(value, (str, dict, list)) and value:
                    yield value if isinstance(value, str) else _dump(value)


def _without(text: str, echoes: Sequence[str]) -> str:
    for echo in sorted((echo for echo in echoes if len(echo) > 2), key=len, reverse=True):
        for form in (echo, json.dumps(echo)[1:-1], json.dumps(echo, ensure_ascii=False)[1:-1]):
            text = re.sub(re.escape(form), " … ", text, flags=re.IGNORECASE)
    return text


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shorten(text: str, limit: int = 160) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= limit else words[:limit] + "…")
