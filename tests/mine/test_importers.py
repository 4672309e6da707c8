"""Published benchmarks, in the formats that they are published in."""

from __future__ import annotations

import pytest

from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.mine.importers import (
    changed_files,
    import_judgements,
    import_patches,
    import_samples,
    read_judgements,
    read_queries,
    read_topics,
)

PATCH = """\
diff --git a/src/old.py b/src/new.py
similarity index 90%
rename from src/old.py
rename to src/new.py
--- a/src/old.py
+++ b/src/new.py
@@ -1 +1 @@
--- a/not/a/header.py
+x
diff --git a/src/added.py b/src/added.py
new file mode 100644
index 0000000..e69de29
--- /dev/null
+++ b/src/added.py
@@ -0,0 +1 @@
+x
diff --git a/src/gone.py b/src/gone.py
deleted file mode 100644
--- a/src/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/logo.png b/logo.png
index 1..2 100644
Binary files a/logo.png and b/logo.png differ
diff --git "a/caf\\303\\251 \\"x\\".py" "b/caf\\303\\251 \\"x\\".py"
--- "a/caf\\303\\251 \\"x\\".py"
+++ "b/caf\\303\\251 \\"x\\".py"
@@ -1 +1 @@
-x
+y
"""

ROW = {
    "instance_id": "pallets__flask-1",
    "repo": "pallets/flask",
    "base_commit": "a" * 40,
    "problem_statement": "It breaks.",
    "patch": PATCH,
    "created_at": "2023-04-14T15:14:54Z",
}


def test_changed_files_are_those_that_were_there_before():
    """Renamed ones by their earlier names, removed and binary ones too, created ones not."""
    assert changed_files(PATCH) == {"src/old.py", "src/gone.py", "logo.png", 'café "x".py'}


@pytest.mark.parametrize(
    ("patch", "files"),
    [
        ("--- a/x.py\t2020-01-01\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n", {"x.py"}),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n",
            {"x", "y"},
        ),
        ("diff --git a/a/x b/y\nrename from a/x\nrename to y\n", {"a/x"}),
        ("--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+b\n", set()),
        ("diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n", {"run.sh"}),
        (
            "diff --git a/x b/y\nsimilarity index 90%\ncopy from x\ncopy to y\n--- a/x\n+++ b/y\n",
            set(),
        ),
        ("", set()),
    ],
)
def test_changed_files_of_other_forms(patch, files):
    """diff's own form, a change of mode, nothing at all."""
    assert changed_files(patch) == files


def test_import_patches_gives_a_panel_for_each_repository_and_counts_the_rest():
    """The reasons add up, whatever leaves."""
    created = (
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
    )
    found = import_patches(
        [
            ROW,
            {**ROW, "instance_id": "b", "repo": "psf/requests", "patch": None,
             "edit_functions": ["src/a.py:C.f", "src/a.py:g"], "created_at": None},
            ROW,
            {**ROW, "instance_id": "c", "patch": created},
            {**ROW, "instance_id": "d", "problem_statement": " "},
        ]
    )  # fmt: skip
    assert dict(found.drops) == {"duplicate_id": 1, "no_gold": 1, "empty_query": 1}
    assert found.samples == 5 == found.drops.total() + sum(map(len, found.panels.values()))
    assert found.panels["pallets/flask"] == [
        {
            "id": "pallets__flask-1",
            "query": "It breaks.",
            "gold": ['café "x".py', "logo.png", "src/gone.py", "src/old.py"],
            "base": "a" * 40,
            "date": "2023-04-14T15:14:54Z",
        }
    ]
    assert found.panels["psf/requests"][0]["gold"] == ["src/a.py"]
    assert "date" not in found.panels["psf/requests"][0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROW, "base_commit": None}, "row 1: no text in the column 'base_commit'"),
        ({**ROW, "repo": 'a/b"\n[[arm]]'}, "is not OWNER/NAME"),
        ({**ROW, "repo": "../b"}, "is not OWNER/NAME"),
        ({**ROW, "patch": None, "edit_functions": "['a.py:f']"}, "neither `patch` nor a list"),
        ({name: ROW[name] for name in ROW if name != "patch"}, "neither `patch` nor a list"),
        ({**ROW, "edit_functions": "a.py:f"}, "must be a list of PATH:NAME"),
        (["row"], "row 1 is no object"),
    ],
)
def test_import_patches_of_other_rows_is_one_line(row, message):
    """What a data set says reaches neither the configuration nor the gold unread."""
    with pytest.raises(PanelError, match=message):
        import_patches([row])


def test_import_leaves_out_what_no_panel_can_hold():
    """Half a surrogate pair, a NUL: that sample alone goes; a created file is never gold."""
    created = "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n"
    found = import_patches(
        [
            {**ROW, "instance_id": "a", "problem_statement": "half \ud83d"},
            {**ROW, "instance_id": "b", "problem_statement": "nul \0"},
            {**ROW, "instance_id": "c", "patch": created, "edit_functions": ["n:f"]},
            ROW,
        ]
    )
    assert dict(found.drops) == {"unreadable_text": 2, "no_gold": 1}
    assert [line["id"] for line in found.panels["pallets/flask"]] == ["pallets__flask-1"]


@pytest.mark.parametrize(
    "text",
    [
        "<top>\n<num> Number: 301\n<title> Foreign  crime\n</top>\n<top><num>302</num><title>Polio",
        "301\tForeign crime\n\n302\tPolio\n",
    ],
)
def test_read_topics_of_both_forms(text):
    """SGML with open or closed fields, and lines with a tab."""
    assert read_topics(text) == {"301": "Foreign crime", "302": "Polio"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("301 Foreign crime\n", "topic 1 has no number or no title"),
        ("<top><num>1</num></top>", "topic 1 has no number or no title"),
        ("1\ta\n1\tb\n", "topic '1' is there twice"),
    ],
)
def test_read_topics_that_cannot_be_read(text, message):
    """The topic is named."""
    with pytest.raises(PanelError, match=message):
        read_topics(text)


def test_import_judgements_keeps_grades_and_tells_what_does_not_fit():
    """Grades of 0 and below are not relevant; unknown topics are named and counted."""
    qrels = "1 0 d1 2\n1 0 d2 0\n2 0 d3 -1\n9 0 d4 1\n9 0 d5 1\n\n"
    found = import_judgements({"1": "a", "2": "b"}, read_judgements(qrels))
    assert found.panels[""] == [{"id": "1", "query": "a", "gold": [{"item": "d1", "grade": 2.0}]}]
    assert (found.samples, dict(found.drops)) == (2, {"no_gold": 1})
    assert found.notes == [
        "2 judgements of 1 topic without a text: 9",
        "a grade below 0 counts as not relevant: 1 judgement",
    ]


def test_read_judgements_of_beir_have_a_header_and_three_columns():
    """What is neither is an error that names the line."""
    assert list(read_judgements("query-id\tcorpus-id\tscore\nq\td\t1\n")) == [("q", "d", 1.0)]
    assert list(read_judgements("q\td with spaces\t1\n")) == [("q", "d with spaces", 1.0)]
    for line in ("q d", "q 0 d inf", "q 0 d high"):
        with pytest.raises(PanelError, match=f"line 2 of the judgements is '{line}'"):
            list(read_judgements(f"q 0 d 1\n{line}\n"))
    with pytest.raises(PanelError, match="query 2 has no `_id`"):
        read_queries([{"_id": "1", "text": "a"}, {"text": "b"}])
    with pytest.raises(PanelError, match="query '1' is there twice"):
        read_queries([{"_id": "1", "text": "a"}] * 2)


def test_import_samples_of_inspect():
    """Texts and messages, one target or several; later epochs are the same sample again."""
    message = {"role": "user", "content": [{"type": "text", "text": "Where?"}, {"type": "image"}]}
    found = import_samples(
        [
            {"id": 1, "input": "Which?", "target": "a.py", "epoch": 1},
            {"id": 1, "input": "Which?", "target": "a.py", "epoch": 2},
            {
                "id": "m",
                "input": [{"role": "system", "content": "x"}, message],
                "target": ["b", "a"],
            },
            {"id": "n", "input": "What?", "target": ""},
            {"id": 0, "input": "Zero?", "target": 7},
        ]
    )
    assert found.panels[""] == [
        {"id": "1", "query": "Which?", "gold": ["a.py"]},
        {"id": "m", "query": "Where?", "gold": ["a", "b"]},
        {"id": "0", "query": "Zero?", "gold": ["7"]},
    ]
    assert dict(found.drops) == {"no_gold": 1, "later_epoch": 1}
    assert found.samples == 5
