"""Tasks that somebody else made."""

from __future__ import annotations

import json

import pytest

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import GoldItem
from coldrun.tasks.mine.jsonl import mine_jsonl

TASK = {"id": "t1", "query": "Where is it?", "gold": ["a.py"]}


@pytest.fixture
def read(tmp_path):
    """Read lines (objects or raw bytes) as a panel."""

    def run(*lines, repository=None, **panel):
        path = tmp_path / "tasks.jsonl"
        raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        path.write_bytes(b"\n".join(raw))
        spec = PanelConfig(kind="jsonl", file=str(path), **panel)
        return mine_jsonl(path, spec, repository=repository)

    return run


def test_mine_jsonl_plain_and_graded_gold_are_read(read):
    """Plain strings are imported gold of grade 1; objects say more; dates become UTC."""
    panel = read(
        {**TASK, "date": "2026-08-01"},
        {
            "id": "t2",
            "query": "And that?",
            "gold": ["z", {"item": "b", "grade": 2, "provenance": "human"}],
            "date": "2026-08-01T03:00:00+02:00",
        },
        {**TASK, "id": "t0"},
        b"  ",
    )
    assert [task.id for task in panel.tasks] == ["t2", "t1", "t0"]
    assert panel.tasks[0].gold == (
        GoldItem(item="b", grade=2.0, provenance="human"),
        GoldItem(item="z", provenance="imported"),
    )
    assert [task.date for task in panel.tasks] == [
        "2026-08-01T01:00:00Z",
        "2026-08-01T00:00:00Z",
        None,
    ]
    assert panel.candidates == 3
    assert set(panel.drops.values()) == {0}
    assert panel.items == ("a.py", "b", "z")
    assert panel.corpora == {}


def test_mine_jsonl_sets_may_be_empty(read):
    """Nothing at all is an answer where answers are sets."""
    panel = read({**TASK, "gold": [], "answer": "set"}, answer="set")
    assert panel.tasks[0].gold == ()
    assert panel.tasks[0].answer == "set"


def test_mine_jsonl_with_a_repository_gold_is_in_its_tree(read, new_repository):
    """The corpus gives items, counts and strata; gold outside it is an error."""
    made = new_repository()
    made.commit("start", {"a.py": "1", "CHANGES": "1"})
    base = made.commit("next", {"CHANGES": "2"})
    repository = Repository.open(made.path)
    panel = read({**TASK, "query": "a.py?"}, repository=repository, base=base)
    assert panel.items == ("CHANGES", "a.py")
    assert panel.change_counts == {"CHANGES": 2, "a.py": 1}
    assert panel.corpora["."].commit == base
    assert panel.tasks[0].strata["names_gold"] == "path"
    with pytest.raises(PanelError, match=r"tasks.jsonl:1: gold item 'b.py' is not in the corpus"):
        read({**TASK, "gold": ["b.py"]}, repository=repository, base=base)


def test_mine_jsonl_byte_order_mark_is_no_part_of_the_file(read):
    """Some editors write one."""
    assert read(b"\xef\xbb\xbf" + json.dumps(TASK).encode()).tasks[0].id == "t1"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([TASK, TASK], r":2: id 't1' twice, first at .*:1"),
        ([{"id": "x", "gold": ["a"]}], r":1: `query` is missing"),
        ([{**TASK, "qeury": ""}], r":1: unknown key `qeury`"),
        ([{**TASK, "id": 7}], r":1: `id` must be a string"),
        ([{**TASK, "query": " "}], r":1: `query` must be a string that is not empty"),
        ([{**TASK, "gold": "a"}], r":1: `gold` must be a list"),
        ([{**TASK, "gold": []}], r":1: `gold` is empty"),
        ([{**TASK, "gold": ["a", "a"]}], r":1: gold item 'a' twice"),
        ([{**TASK, "gold": [1]}], r":1: a gold item is a string or an object"),
        ([{**TASK, "gold": [{"item": "a", "grade": 0}]}], r":1: `grade` must be a number above 0"),
        ([{**TASK, "gold": [{"item": "a", "grade": True}]}], r":1: `grade` must be"),
        ([b'{"id":"a","query":"b","gold":[{"item":"a","grade":NaN}]}'], r":1: `grade` must be"),
        ([{**TASK, "gold": [{"item": "a", "provenance": "x"}]}], r":1: `provenance` must be"),
        ([{**TASK, "answer": "set"}], r":1: `answer` is 'set' but the panel's is 'ranking'"),
        ([{**TASK, "date": "yesterday"}], r":1: `date` must be an ISO 8601 date"),
        ([{**TASK, "date": 3}], r":1: `date` must be an ISO 8601 date"),
        ([TASK, b"{"], r":2: not valid JSON"),
        ([b"[]"], r":1: expected a JSON object"),
        ([b'{"id":"a","id":"b"}'], r":1: not valid JSON: key 'id' twice"),
        ([b'{"id":"\\ud800","query":"b","gold":["a"]}'], r":1: `id` has half of a surrogate"),
        ([b'{"id":"a","query":"b","gold":["\\ud800"]}'], r":1: `item` has half of a surrogate"),
        ([{**TASK, "gold": [" "]}], r":1: `item` must be a string that is not empty"),
        ([{**TASK, "query": "a\0b"}], r":1: `query` has a NUL character"),
        ([{**TASK, "id": "a\nb"}], r":1: `id` has characters that cannot be printed"),
        ([{**TASK, "gold": [{"item": "a", "grade": 10**400}]}], r":1: `grade` must be a number"),
        ([{**TASK, "date": "0001-01-01T00:00+14:00"}], r":1: `date` must be an ISO 8601 date"),
        ([b"[" * 100_000], r":1: not valid JSON"),
        ([b"\xff"], r":1: not UTF-8"),
        ([json.dumps(TASK).encode() + b"\r"], r":1: the file has CRLF line ends"),
        ([], r"has no tasks"),
    ],
)
def test_mine_jsonl_each_mistake_is_one_line_with_its_place(read, lines, message):
    """The error names file and line, and what was expected."""
    with pytest.raises(PanelError, match=message) as caught:
        read(*lines)
    assert "\n" not in str(caught.value)


def test_mine_jsonl_missing_file_is_a_clear_error(tmp_path):
    """The path is named."""
    spec = PanelConfig(kind="jsonl", file="none.jsonl")
    with pytest.raises(PanelError, match=r"no file at .*none.jsonl"):
        mine_jsonl(tmp_path / "none.jsonl", spec)
