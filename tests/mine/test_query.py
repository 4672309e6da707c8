"""What is left of a commit message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.mine.query import clean_message, decode_message, split_merge_title

KEPT = [
    b"Fix the parser",
    b"Fix the parser\n\nIt was wrong.\n\nNote: this is prose.",
    b"docs: say what a token is",
    b"Fixes: the first line is a title",
    b"One\n\nSee https://example.org/x: there",
    b"List\n\n- a: b\n- c: d",
    b"Two\n\nBefore: slow\nAfter: fast",
    "Überarbeite den Zerteiler".encode(),
]


@pytest.mark.parametrize("message", KEPT)
def test_clean_message_prose_stays_as_it_is(message):
    """Nothing that a person said about the change is lost."""
    assert clean_message(message) == message.decode()


@pytest.mark.parametrize(
    "noise",
    [
        "Signed-off-by: A <a@b>\nCo-authored-by: B <b@c>",
        "Fixes: #12\nChange-Id: I0123456789abcdef",
        "Reviewed-on: https://example.org/c/1\nReviewed-by: A\n  <a@b>",
        "Closes-Bug: #7",
        "Refs: PROJ-1",
        "(cherry picked from commit 0123456789abcdef0123456789abcdef01234567)",
        "# Conflicts:\n#\tsrc/a.py\n#\tsrc/b.py",
        "Conflicts:\n\tsrc/a.py\n\tsrc/b.py",
        "git-svn-id: https://svn.example.org/trunk@12 abc-def",
        "---------\n\nCo-authored-by: B <b@c>",
        "Signed-off-by: A <a@b>\n\nConflicts:\n\tsrc/a.py\n\nChange-Id: I1",
        "Fixes: #1\n\nSigned-off-by: A <a@b>\n(cherry picked from commit 0123abc)",
    ],
)
def test_clean_message_tool_lines_go(noise):
    """Trailers, notes of tools and lists of conflicts are not the question."""
    assert clean_message(f"Title\n\nBody text.\n\n{noise}\n".encode()) == "Title\n\nBody text."
    assert clean_message(f"Title\r\n\r\n{noise}\r\n".replace("\n", "\r\n").encode()) == "Title"


def test_clean_message_people_in_the_middle_go_and_prose_around_them_stays():
    """A squashed message has trailers between its parts."""
    message = b"Title\n\nOne.\n\nChange-Id: I1\nSigned-off-by: A <a@b>\n\nTwo."
    assert clean_message(message).split() == ["Title", "One.", "Two."]


@pytest.mark.parametrize(
    "message", [b"", b"\n \n", b"git-svn-id: x@1 y", b"(cherry picked from commit 0123abc)"]
)
def test_clean_message_nothing_said_is_empty(message):
    """A message that says nothing is no question."""
    assert clean_message(message) == ""


def test_clean_message_template_instructions_go_and_code_stays():
    """What a pull-request template tells its author is no part of the question."""
    message = b"Fix it\n\n<!-- say what\nyou did -->\n\nIt broke.\n<!-- end -->\nUse `<!-- x -->`."
    assert clean_message(message) == "Fix it\n\n\nIt broke.\nUse `<!-- x -->`."


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Wrap lines (#123)", "Wrap lines"),
        ("Fix #3084: Correct the flag", "Correct the flag"),
        ("Wrap lines\n\nFixes #1.", "Wrap lines"),
        ("Wrap lines\n\nFixes #654, #824 and #951", "Wrap lines"),
        ("Wrap lines (fixes #12)\n\nCloses: #7\nSupersed: #3", "Wrap lines"),
        ("Wrap lines as in pallets/click#2837 by two", "Wrap lines as by two"),
        ("See https://github.com/a/b/pull/30#issuecomment-1 for lines", "for lines"),
        ("EOF was introduced in 262bdf0", "EOF was introduced"),
        ("Wrap lines\n\nThis reverts commit 7111dc0cbaae2070173e9f4a054745ee7d036dfa.\nIt broke.",
         "Wrap lines\n\nThis reverts.\nIt broke."),
        ("Add test for issue 11412", "Add test"),
        ("gh-1234: wrap lines", "wrap lines"),
    ],
)  # fmt: skip
def test_clean_message_what_names_the_change_itself_goes(said, asked):
    """An arm with a network could look the answer up by these."""
    assert clean_message(said.encode()) == asked


@pytest.mark.parametrize(
    "message",
    [
        "Read C# and F# files",
        "Colours such as #fff and #12ab56 are kept as &#39; is",
        "See https://docs.python.org/3/library/io.html",
        "Version 8.1.7 of 2020 added deadbeef and facade",
        "  1. one\n\n\n  2. two",
    ],
)
def test_clean_message_what_only_looks_like_a_number_of_a_change_stays(message):
    """Prose, addresses of documents and words of hexadecimal letters are the question."""
    assert clean_message(message.encode()) == message.strip()


def test_clean_message_subject_only_is_the_title():
    """The subject is the first line, of a pull request its title."""
    assert clean_message(b"Title\nmore\n\nBody", subject_only=True) == "Title"
    message = b"Merge pull request #1 from a/b\n\nThe title\n\nBody"
    assert clean_message(message, subject_only=True) == "The title"


def test_clean_message_bytes_that_are_no_text_are_replaced():
    """A message in another encoding still is a question."""
    assert clean_message(b"caf\xe9 fix") == "caf\ufffd fix"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Merge pull request #12 from x/fix-y\n\nTitle\n\nBody", "Title\n\nBody"),
        ("Merge pull request #12 in P/r from x to main\n\nTitle", "Title"),
        ("Merge branch 'fix-y' into 'main'\n\nTitle\n\nSee merge request a/b!12", "Title"),
        ("Merge branch 'main' into 'dev'\n\nTitle\n\nSee merge request a/b!12", "Title"),
        ("Merged in fix-y (pull request #12)\n\nTitle", "Title"),
        ("Merged PR 12: Title\n\nBody", "Title\n\nBody"),
        ("Pull request #12: Title\n\nMerge in P/r from x to main", "Title\n\nMerge in P/r"),
        ('Merge "Title" into main', "Title"),
        ('Merge "Title"', "Title"),
        ("Merge #12\n\n12: Title r=a a=b", "12: Title"),
        ("Merge branch 'fix-y'\n\nWhat it does", "What it does"),
        ("Merge the two parsers", "Merge the two parsers"),
    ],
)
def test_split_merge_title_pull_requests_keep_their_title(message, text):
    """Every forge's way to merge leaves title and body."""
    found = split_merge_title(message)
    assert not found.is_sync
    assert found.text.startswith(text)


@pytest.mark.parametrize(
    "message",
    [
        "Merge main into fix-y",
        "Merge branch 'main' into fix-y",
        "Merge branch 'main' into fix-y\n\n# Conflicts:\n#\ta.py",
        "Merge remote-tracking branch 'origin/x' into y\n\nSome words",
        "Merge branch 'x' of https://example.org/r into x",
        "Merge branch '8.1.x'",
        "Merge branch '8.1.x' into main",
        "Merge branch 'release/2024' into main",
        "Merge branch 'fix-y'",
        "Merge branches 'a', 'b' and 'c'",
        "Merge tag 'v1.0' into main",
        "Merge commit '0123abc' into x",
        "Merge branch 'stable-2'\n\n* stable-2: (23 commits)\n  one\n  two",
    ],
)
def test_split_merge_title_syncs_are_recognised(message):
    """Bringing a branch up to date is no pull request."""
    assert split_merge_title(message).is_sync


@given(st.binary(max_size=200))
def test_clean_message_any_bytes_never_fail_and_cleaning_is_trimmed(message):
    """No message stops mining, and what comes out has nothing around it."""
    query = clean_message(message)
    assert query == query.strip()
    assert "\r" not in query


LINES = ["Title", "One.", "", "Fixes: #1", "Change-Id: I1", "a: b", "# x", "\tf", "Conflicts:"]


@given(st.lists(st.sampled_from(LINES)))
def test_clean_message_any_lines_nothing_is_made_up(lines):
    """Every line of a cleaned message stood in the message, in the same order."""
    message = "\n".join(lines)
    rest = iter(decode_message(message.encode()).split("\n"))
    for line in clean_message(message.encode()).split("\n"):
        assert not line or line.strip() in (other.strip() for other in rest)
