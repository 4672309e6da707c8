"""Reading items out of raw answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.arms.builtin.builtin_kinds import Bm25Arm
from coldrun.tasks.arms.command.command_kind import CommandArm
from coldrun.tasks.arms.failures import find_failure
from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from coldrun.tasks.arms.parse import ParsedAnswer, parse_answer


def command(**values: Any) -> CommandArm:
    return CommandArm(name="t", kind="command", argv=("x",), mode="per-task", **values)


def mcp(**values: Any) -> McpArm:
    return McpArm(name="t", kind="mcp", argv=("x",), tool="search", **values)


def result(text: str | None = None, structured: Any = None) -> str:
    """The JSON of an MCP tool result."""
    content = [] if text is None else [{"type": "text", "text": text}]
    value: dict[str, Any] = {"content": content, "isError": False}
    if structured is not None:
        value["structuredContent"] = structured
    return json.dumps(value)


def read(raw: str, arm: Any, answer: Any = "ranking") -> ParsedAnswer:
    return parse_answer(raw, arm, answer=answer, corpus_dir="/c/corpus")


@pytest.mark.parametrize(
    ("path", "item"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/a.py", "src/a.py"),
        ("src//a.py", "src/a.py"),
        ("src/./b/../a.py", "src/a.py"),
        ("src\\a.py", "src/a.py"),
        ("/c/corpus/src/a.py", "src/a.py"),
        ("file:///c/corpus/src/a.py", "src/a.py"),
        ("//c/corpus/src/a.py", "src/a.py"),
        (" src/a.py ", "src/a.py"),
        ("a b%20c.py", "a b%20c.py"),
        ("caf\udce9.py", "caf%E9.py"),
    ],
)
def test_paths_are_normalised(path: str, item: str) -> None:
    """Paths come in many forms and mean one file."""
    arm = Bm25Arm(name="t", kind="bm25")
    assert read(json.dumps({"items": [{"path": path}]}), arm).items == (item,)


@pytest.mark.parametrize("path", ["/etc/passwd", "/c/corpus2/a", "../a", "/c/corpus/../a", "."])
def test_paths_outside_the_corpus_are_a_problem(path: str) -> None:
    """An arm that searched something else has not missed: it has failed."""
    parsed = read(json.dumps({"paths": [path, "src/a.py"]}), Bm25Arm(name="t", kind="bm25"))
    assert parsed.items == ()
    assert parsed.problem is not None
    assert repr(path) in parsed.problem


def test_first_occurrence_counts() -> None:
    """A file that is found twice keeps its better place."""
    raw = json.dumps({"paths": ["b", "./a", "b", "a", "c"]})
    assert read(raw, Bm25Arm(name="t", kind="bm25")).items == ("b", "a", "c")


def test_sets_hold_plain_names() -> None:
    """Names of a set are not paths; the empty set is an answer."""
    arm = Bm25Arm(name="t", kind="bm25")
    assert read(json.dumps({"items": ["svc/x", " svc-b "]}), arm, "set").items == ("svc/x", "svc-b")
    assert read(json.dumps({"items": []}), arm, "set") == ParsedAnswer()
    assert read(json.dumps({"items": []}), arm) == ParsedAnswer(abstained=True)


@pytest.mark.parametrize(
    "raw",
    [
        result(structured={"results": [{"file": "a"}, {"file": "b"}]}),
        result(structured={"result": {"results": [{"file": "a"}, {"file": "b"}]}}),
        result(structured={"result": json.dumps({"results": [{"file": "a"}, {"file": "b"}]})}),
        result(json.dumps({"results": [{"file": "a"}, {"file": "b"}]})),
        result('Found:\n```json\n{"results": [{"file": "a"}, {"file": "b"}]}\n```\nDone.'),
    ],
)
def test_tool_results_are_read_by_json_path(raw: str) -> None:
    """Structured content, wrapped or not, JSON text, and JSON in Markdown are all read."""
    assert read(raw, mcp(items="$.results[*].file")).items == ("a", "b")


def test_tool_result_in_markdown_is_read_by_pattern() -> None:
    """The first group of the first match of each line is the item."""
    raw = result("## Results\n1. `src/a.py` (0.9)\n2. `src/b.py` (0.5) see `x`\n")
    assert read(raw, mcp(items_regex=r"^\d+\. `([^`]+)`")).items == ("src/a.py", "src/b.py")


def test_list_values_of_a_json_path_are_flattened() -> None:
    """A path may lead to a list of texts as well as to the texts."""
    assert read('{"files": ["a", "b"]}', command(items="$.files")).items == ("a", "b")


def test_json_lines_are_one_list() -> None:
    """A program may print an object a line."""
    raw = '{"file": "a"}\n{"file": "b"}\n'
    assert read(raw, command(items="$[*].file")).items == ("a", "b")


@pytest.mark.parametrize(
    "raw",
    [
        result(structured={"results": []}),
        result(structured={"results": None}),
        result(json.dumps({"results": []})),
        result("No results found."),
        result("Found 0 matches"),
        result(),
    ],
)
def test_honest_emptiness_is_an_abstention(raw: str) -> None:
    """Nothing found is told apart from a parser that does not fit."""
    assert read(raw, mcp(items="$.results[*].file")) == ParsedAnswer(abstained=True)


def test_inner_list_that_is_empty_is_an_abstention() -> None:
    """A group without members was found, and is empty."""
    raw = result(structured={"groups": [{"hits": []}, {"hits": []}]})
    assert read(raw, mcp(items="$.groups[*].hits[*].file")) == ParsedAnswer(abstained=True)


def test_filter_that_lets_nothing_pass_is_an_abstention() -> None:
    """The results are there, and none of them is what the path asks for."""
    raw = result(structured={"results": [{"file": "a", "score": 0}]})
    assert read(raw, mcp(items="$.results[?(@.score > 1)].file")) == ParsedAnswer(abstained=True)


@pytest.mark.parametrize(
    ("raw", "arm"),
    [
        (result(structured={"hits": [{"file": "a"}]}), mcp(items="$.results[*].file")),
        (result(structured={"results": [{"path": "a"}]}), mcp(items="$.results[*].file")),
        (result(json.dumps({"results": {"a": [[1, "x"]]}})), mcp(items="$.results[*].file")),
        (result("src/a.py: match"), mcp(items="$.results[*].file")),
        (result("src/a.py: match"), mcp(items_regex="^file=(.+)$")),
        (result(structured={"results": [{"file": 3}]}), mcp(items="$.results[*].file")),
        (result(structured={"results": []}), mcp(items="$.[[")),
        (result("x"), mcp(items_regex="(")),
        (result("no path in here"), mcp()),
        ("not json", mcp(items="$.x")),
        ("usage: tool QUERY", command()),
        ("[" * 200_000, mcp(items="$.x")),
        ("[" * 200_000, command(items="$.x")),
    ],
)
def test_parser_that_does_not_fit_is_a_problem(raw: str, arm: McpArm | CommandArm) -> None:
    """A wrong path or pattern must not read as a score of zero."""
    parsed = read(raw, arm)
    assert parsed.items == ()
    assert parsed.problem is not None


@pytest.mark.parametrize(
    ("raw", "items"),
    [
        ("src/a.py:3:x = 1\n./src/b.py:10:    y: int\n", ("src/a.py", "src/b.py")),
        ("src/a.py:3\nsrc/a.py:4\n", ("src/a.py",)),
        ("src/a.py:3:x\n--\nsrc/a.py:9:x\ngrep: x.png: binary file matches\n", ("src/a.py",)),
        ("my docs/a.md:3:x\n", ("my docs/a.md",)),
        ("src/a.py\n12:30:05 INFO searched\n", ("src/a.py", "12:30:05 INFO searched")),
    ],
)
def test_lines_of_grep_are_read_as_their_paths(raw: str, items: tuple[str, ...]) -> None:
    """`path:line:text` is read without a parser, of programs and of tools, where most lines are."""
    assert read(raw, command()).items == items
    assert read(result(raw), mcp()).items == items


@pytest.mark.parametrize(
    ("raw", "arm", "is_failure"),
    [
        (result("Index is not ready"), mcp(items_regex="^(.+\\.py)"), True),
        (result(structured={"error": "timed out"}), mcp(items="$.results[*]"), True),
        (
            result(structured={"results": ["a.py"], "error": "search timed out"}),
            mcp(items="$.results[*]"),
            True,
        ),
        (
            result(structured={"results": ["a.py"], "message": "reranker timed out"}),
            mcp(items="$.results[*]"),
            False,
        ),
        (result("a.py: raise Timeout('timed out')"), mcp(items_regex="^([^:]+):"), False),
        (result("x" * 3000 + " timed out"), mcp(items_regex="^(.+\\.py)"), False),
        (result("no results for: connection refused"), mcp(items="$.x[*]"), False),
        ("timed out\n", command(), True),
        ("src/a.py\nsrc/timed-out.py\n", command(), False),
        ("error: timed out\n", command(items_regex="^(.+\\.py)$"), True),
    ],
)
def test_failure_is_found_in_the_tools_own_words(raw: str, arm: Any, is_failure: bool) -> None:
    """Found code and the repeated question are not the tool's words."""
    assert (find_failure(raw, arm, echoes=["connection refused"]) is not None) is is_failure


PATHS = st.lists(st.text(alphabet="ab./\\ ", min_size=1, max_size=8), max_size=6)


@given(PATHS)
def test_items_are_clean_whatever_comes(paths: list[str]) -> None:
    """No item is absolute, repeated, empty or outside the corpus."""
    parsed = read(json.dumps({"paths": paths}), Bm25Arm(name="t", kind="bm25"))
    assert len(set(parsed.items)) == len(parsed.items)
    for item in parsed.items:
        assert item
        assert not item.startswith(("/", "./", "../"))
        assert "\\" not in item
        assert read(json.dumps({"paths": [item]}), Bm25Arm(name="t", kind="bm25")).items == (item,)


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_exception(raw: str) -> None:
    """Whatever a tool writes, the outcome is items or a problem."""
    for arm in (mcp(items="$.a[*].b"), command(items_regex="^(.+)$"), command(), mcp()):
        parsed = read(raw, arm)
        assert parsed.problem is None or parsed.items == ()
        find_failure(result(raw), mcp(items="$.a"), echoes=[raw])
