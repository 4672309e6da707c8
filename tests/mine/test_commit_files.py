"""Tasks from the commits of real repositories."""

from __future__ import annotations

import re

import pytest

from coldrun.tasks.config import DEFAULT_EXCLUDE_GOLD, PanelConfig
from coldrun.tasks.lib.errors import PanelError, RepositoryError
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import DROP_REASONS, GoldItem
from coldrun.tasks.mine.candidates import is_bot, make_task_id

BODY = "".join(f"line {at}\n" for at in range(40))


def drops(panel):
    """The reasons that occurred."""
    assert tuple(panel.drops) == DROP_REASONS
    assert panel.candidates == len(panel.tasks) + sum(panel.drops.values())
    return {reason: count for reason, count in panel.drops.items() if count}


def test_mine_commit_gives_a_task_with_its_files(new_repository, mine):
    """One commit: its message is the question, the files that base has are the answer."""
    made = new_repository()
    base = made.commit("start", {"src/a.py": "1", "src/b.py": "1"})
    head = made.commit("Fix the parser", {"src/b.py": "2", "src/a.py": "2", "new.py": "x"})
    panel = mine(made, base=base)
    (task,) = panel.tasks
    assert task.query == "Fix the parser"
    assert task.gold == (GoldItem(item="src/a.py"), GoldItem(item="src/b.py"))
    assert task.id == make_task_id("Fix the parser")
    assert (task.date, task.answer, task.base) == ("2020-01-01T00:01:00Z", "ranking", None)
    assert task.strata == {
        "names_gold": "no",
        "files": "multi",
        "language": "python",
        "kind": "code",
        "only": "no",
    }
    assert panel.base == Repository.open(made.path).resolve(base)
    assert panel.head.commit == head
    assert panel.corpora == {".": panel.base}
    assert panel.items == ("src/a.py", "src/b.py")
    assert panel.change_counts == {"src/a.py": 1, "src/b.py": 1}
    assert drops(panel) == {}


def test_mine_every_reason_to_drop_is_counted_once(new_repository, mine):
    """Whatever leaves has the first reason that holds, and the reasons add up."""
    made = new_repository()
    base = made.commit("start", {"a": "1", "CHANGES.md": "1", **{f"f{n}": "1" for n in range(4)}})
    made.commit("same words", {"a": "2"})
    made.commit("side", {"s": "1"}, branch="side", parents=[base])
    made.merge("Merge branch 'side'", made.git("rev-parse", "side"), files={"s": "1"})
    made.commit("Bump it", {"a": "3"}, author="dependabot[bot] <x@y>")
    made.commit("", {"a": "4"})
    made.commit("nothing touched")
    made.commit("only the log", {"CHANGES.md": "2"})
    made.commit("only new files", {"n": "1"})
    made.commit("too many", {f"f{n}": "2" for n in range(4)})
    made.commit("same words", {"f1": "3"})
    panel = mine(made, base=base, exclude_gold=DEFAULT_EXCLUDE_GOLD, max_gold=3)
    assert drops(panel) == {
        "merge": 1,
        "bot_author": 1,
        "empty_query": 1,
        "no_file": 1,
        "only_excluded": 1,
        "created_after_base": 2,
        "too_many_files": 1,
        "duplicate": 1,
    }
    assert [task.query for task in panel.tasks] == ["same words"]
    assert panel.tasks[0].gold == (GoldItem(item="a"), GoldItem(item="f1"))


@pytest.mark.parametrize(
    ("duplicates", "max_gold", "gold", "dropped"),
    [
        ("union", 3, ["a", "b", "c"], {"duplicate": 1}),
        ("union", 2, None, {"duplicate": 1, "too_many_files": 1}),
        ("newest", 2, ["b", "c"], {"duplicate": 1}),
        ("drop", 2, None, {"duplicate": 2}),
    ],
)
def test_mine_questions_asked_twice_are_joined_or_dropped(
    new_repository, mine, duplicates, max_gold, gold, dropped
):
    """What is declared decides: the union of gold, the newest alone, or neither."""
    made = new_repository()
    base = made.commit("start", {"a": "1", "b": "1", "c": "1"})
    made.commit("the same words", {"a": "2"})
    made.commit("the same words (#7)", {"b": "2", "c": "2"})
    panel = mine(made, base=base, duplicates=duplicates, max_gold=max_gold)
    assert [[item.item for item in task.gold] for task in panel.tasks] == [gold] * (
        gold is not None
    )
    assert drops(panel) == dropped
    assert len(panel.dropped) == sum(dropped.values())


def test_mine_dropped_candidates_are_named_newest_first(new_repository, mine):
    """Each with its commit, the reason and its subject; `drop` says which kinds of junk go."""
    made = new_repository()
    base = made.commit("start", {"a": "1", "b": "1"})
    bump = made.commit("Release 2.0", {"a": "2"})
    kept = made.commit("Keep the parser's newlines", {"a": "3"})
    typo = made.commit("Fix typo", {"b": "2"})
    panel = mine(made, base=base, drop=PanelConfig.model_fields["drop"].default)
    assert [tuple(each) for each in panel.dropped] == [
        (typo, "few_words", "Fix typo"),
        (bump, "version_bump", "Release 2.0"),
    ]
    assert mine(made, base=base, drop=("few_words",)).candidates == 3
    assert drops(mine(made, base=base, drop=("few_words",))) == {"few_words": 1}
    assert kept not in {each.commit for each in panel.dropped}


def test_mine_path_that_another_file_was_renamed_onto_is_gold_too(new_repository, mine):
    """At base both names exist, so a search may give either."""
    made = new_repository()
    base = made.commit("start", {"old.py": BODY, "new.py": "short"})
    made.commit("Throw the new one away", {"new.py": None})
    made.commit("Take the old one's place", {"old.py": None, "new.py": BODY})
    made.commit("Change it afterwards", {"new.py": BODY + "x"})
    gold = {task.query: [item.item for item in task.gold] for task in mine(made, base=base).tasks}
    assert gold == {
        "Throw the new one away": ["new.py"],
        "Take the old one's place": ["new.py", "old.py"],
        "Change it afterwards": ["new.py", "old.py"],
    }


def test_mine_generated_files_are_no_gold(new_repository, mine):
    """`.gitattributes` at base says which."""
    made = new_repository()
    marks = "gen/** linguist-generated\n*.snap linguist-generated=true -diff\n*.py text\n# x\n"
    files = {".gitattributes": marks, "gen/a.py": "1", "b.snap": "1", "c.py": "1"}
    base = made.commit("start", files)
    made.commit("Regenerate and change", {"gen/a.py": "2", "b.snap": "2", "c.py": "2"})
    (task,) = mine(made, base=base).tasks
    assert [item.item for item in task.gold] == ["c.py"]


@pytest.mark.parametrize(
    ("path", "is_gold"),
    [
        ("docs/changes.rst", False),
        ("doc/build/changelog/unreleased_20/1.rst", False),
        ("src/changes.xml", False),
        ("newsfragments/12.bugfix", False),
        ("docs/release-notes/1.md", False),
        ("web/app.min.js", False),
        ("src/changes.py", True),
        ("tasks/history/plan.py", True),
        ("news/views.py", True),
        ("docs/history.html", True),
    ],
)
def test_mine_changelogs_of_any_name_and_depth_are_no_gold(new_repository, mine, path, is_gold):
    """Code that has the same name stays."""
    made = new_repository()
    base = made.commit("start", {path: "1", "a": "1"})
    made.commit("Change both of them", {path: "2", "a": "2"})
    (task,) = mine(made, base=base, exclude_gold=DEFAULT_EXCLUDE_GOLD).tasks
    assert (path in [item.item for item in task.gold]) == is_gold


def test_mine_order_is_committer_time_then_name(new_repository, mine):
    """Newest first by the committer's clock; equal times go by the full commit name."""
    made = new_repository()
    base = made.commit("start", {"a": "1"}, date=1_600_000_000)
    names = {made.commit(f"at {n}", {"a": f"{n}x"}, date=1_600_000_100): f"at {n}" for n in "123"}
    made.commit("early", {"a": "e"}, date=1_600_000_050)
    made.commit("late", {"a": "l"}, date=1_600_000_200)
    panel = mine(made, base=base)
    expected = ["late", *(names[commit] for commit in sorted(names)), "early"]
    assert [task.query for task in panel.tasks] == expected


def test_mine_renamed_file_counts_under_its_name_at_base(new_repository, mine, gold_by_query):
    """A chain of renames leads back; a new file under the old name is a new file. With renames
    ignored, what is renamed is gone, and its new name is a new file."""
    made = new_repository()
    base = made.commit("start", {"a.py": BODY, "keep.py": "1"})
    made.commit("move", {"a.py": None, "b.py": BODY})
    made.commit("move on", {"b.py": None, "c.py": BODY + "more\n"})
    made.commit("edit", {"c.py": BODY + "edited\n"})
    made.commit("reuse", {"a.py": "something else\n", "keep.py": "2"})
    made.commit("edit the new one", {"a.py": "again\n"})
    panel = mine(made, base=base)
    assert gold_by_query(panel) == {
        "move": ["a.py"],
        "move on": ["a.py"],
        "edit": ["a.py"],
        "reuse": ["keep.py"],
    }
    assert drops(panel) == {"created_after_base": 1}
    ignored = mine(made, base=base, renames="ignore")
    assert gold_by_query(ignored) == {
        "move": ["a.py"],
        "reuse": ["a.py", "keep.py"],
        "edit the new one": ["a.py"],
    }
    assert drops(ignored) == {"created_after_base": 2}


def test_mine_copies_and_deletions_follow_their_rules(new_repository, mine, gold_by_query):
    """A deleted file had to be found; a copy is a new file; a file that returns is the old one."""
    made = new_repository()
    base = made.commit("start", {"a.py": BODY, "b.py": "1"})
    made.commit("copy", {"copy.py": BODY, "b.py": "2"})
    made.commit("delete", {"a.py": None})
    made.commit("restore", {"a.py": BODY})
    assert gold_by_query(mine(made, base=base)) == {
        "copy": ["b.py"],
        "delete": ["a.py"],
        "restore": ["a.py"],
    }


def test_mine_modes_links_and_submodules_count_as_they_should(new_repository, mine, gold_by_query):
    """Modes and symbolic links are changes of files; a submodule is none."""
    made = new_repository()
    start = made.commit("root", {"x": "x"})
    base = made.commit(
        "start",
        {"run": "1", "link": ("120000", "run"), "lib": ("160000", start), "both": "1"},
    )
    made.commit("mode only", {"run": ("100755", "1")})
    made.commit("point elsewhere", {"link": ("120000", "x")})
    made.commit("update the library", {"lib": ("160000", base)})
    made.commit("from file to link", {"both": ("120000", "x")})
    made.commit("submodule becomes a file", {"lib": "now a file"})
    panel = mine(made, base=base)
    assert gold_by_query(panel) == {
        "mode only": ["run"],
        "point elsewhere": ["link"],
        "from file to link": ["both"],
    }
    assert drops(panel) == {"no_file": 1, "created_after_base": 1}
    assert "lib" not in panel.items


def test_mine_odd_file_names_become_items(new_repository, mine, gold_by_query):
    """Any bytes can be gold."""
    made = new_repository()
    names = [b"a b", b'"', b"new\nline", b"caf\xe9", "日本".encode(), b"caf%E9"]
    base = made.commit("start", dict.fromkeys(names, "1"))
    made.commit("all", dict.fromkeys(names, "2"))
    gold = gold_by_query(mine(made, base=base))["all"]
    assert gold == sorted(['"', "a b", "caf%25E9", "caf%E9", "new\nline", "日本"])


def test_mine_merge_unit_pull_requests_and_squashes_are_tasks(new_repository, mine, gold_by_query):
    """Along first parents: a pull request, a squashed commit, and no branch syncs."""
    made = new_repository()
    base = made.commit("start", {"a": BODY, "b": "1", "c": "1", "d": "1"})
    made.commit("wip", {"a": None, "moved": BODY}, branch="topic", parents=[base])
    topic = made.commit("wip 2", {"b": "2"}, branch="topic")
    made.merge(
        "Merge pull request #1 from me/topic\n\nMake it better\n\nBecause.",
        topic,
        files={"a": None, "moved": BODY, "b": "2"},
    )
    made.commit("Squashed change (#2)", {"c": "2"})
    other = made.commit("other", {"d": "2"}, branch="other", parents=[base])
    made.merge("Merge branch 'main' into other", other, files={"d": "2"})
    made.commit("bump", {"d": "3"}, branch="bot", parents=[base])
    bot = made.git("rev-parse", "bot")
    made.merge("Merge pull request #3 from x/dependabot/pip\n\nBump d", bot, files={"d": "3"})
    made.commit("Touch the moved file", {"moved": BODY + "x"})
    panel = mine(made, base=base, unit="merge")
    assert gold_by_query(panel) == {
        "Make it better\n\nBecause.": ["a", "b"],
        "Squashed change": ["c"],
        "Touch the moved file": ["a"],
    }
    assert drops(panel) == {"merge": 1, "bot_author": 1}


def test_mine_octopus_and_side_branches_are_walked(new_repository, mine, gold_by_query):
    """Commits on all merged branches are tasks, an octopus is one merge."""
    made = new_repository()
    base = made.commit("start", {"a": "1", "b": "1", "c": "1"})
    tips = [
        made.commit(f"side {name}", {name: "2"}, branch=f"side-{name}", parents=[base])
        for name in "abc"
    ]
    made.merge("octopus", *tips, files={"a": "2", "b": "2", "c": "2"})
    panel = mine(made, base=base)
    assert gold_by_query(panel) == {f"side {name}": [name] for name in "abc"}
    assert drops(panel) == {"merge": 1}


def test_mine_parent_base_each_task_has_its_own_corpus(new_repository, mine):
    """Gold is what the first parent has, under the names there; the newest `last` are looked at."""
    made = new_repository()
    root = made.commit("root", {"a": BODY})
    added = made.commit("add", {"b": "1"})
    edited = made.commit("edit the added", {"b": "2"})
    made.commit("rename", {"a": None, "z": BODY})
    panel = mine(made, base="parent")
    found = {task.query: (task.base, [gold.item for gold in task.gold]) for task in panel.tasks}
    assert found == {"edit the added": (added, ["b"]), "rename": (edited, ["a"])}
    assert drops(panel) == {"created_after_base": 2}
    assert panel.base is None
    assert panel.corpora["."].commit == added
    assert panel.items == ("a", "b")
    assert mine(made, base="parent", last=2).candidates == 2
    assert root not in {task.base for task in panel.tasks}


def test_mine_parent_base_nothing_solvable_is_an_empty_panel(new_repository, mine):
    """A repository with one commit has candidates, and a reason for each."""
    made = new_repository()
    made.commit("root", {"a": "1"})
    panel = mine(made, base="parent")
    assert (panel.tasks, panel.items, dict(panel.corpora)) == ((), (), {})
    assert drops(panel) == {"created_after_base": 1}


@pytest.mark.parametrize(
    ("message", "stratum"),
    [
        ("Fix src/click/core.py", "path"),
        ("Fix core.py.", "basename"),
        ("Fix `click/core.py`", "basename"),
        ("Fix score.pyx", "no"),
        ("Fix the core", "no"),
    ],
)
def test_mine_question_that_names_its_answer_is_marked(new_repository, mine, message, stratum):
    """A report can leave out what was given away."""
    made = new_repository()
    base = made.commit("start", {"src/click/core.py": "1"})
    made.commit(message, {"src/click/core.py": "2"})
    assert mine(made, base=base).tasks[0].strata["names_gold"] == stratum


def test_mine_settings_of_the_panel_decide_its_tasks(new_repository, mine):
    """The subject alone as the question, sets as answers; revisions are stored in full length."""
    made = new_repository()
    base = made.commit("start", {"a": "1"})
    made.commit("Title\n\nBody", {"a": "2"})
    panel = mine(made, base=base[:7], query="subject", answer="set")
    assert (panel.tasks[0].query, panel.tasks[0].answer) == ("Title", "set")
    assert panel.base.commit == base


def test_mine_change_counts_leave_out_what_cannot_be_gold(new_repository, mine):
    """The deployable constant answers with files that change, not with changelogs."""
    made = new_repository()
    made.commit("start", {"a": "1", "b": "1", "CHANGES": "1", "gone": "1"})
    made.commit("edit", {"a": "2", "CHANGES": "2"})
    base = made.commit("edit", {"a": "3", "CHANGES": "3", "gone": None})
    made.commit("later", {"b": "2"})
    panel = mine(made, base=base, exclude_gold=DEFAULT_EXCLUDE_GOLD)
    assert panel.change_counts == {"a": 3, "b": 1}
    assert "CHANGES" in panel.items


def test_mine_bare_detached_and_tagged_give_the_same(new_repository, mine, tmp_path):
    """How a repository is kept and how its commits are named does not matter."""
    made = new_repository()
    base = made.commit("start", {"a": "1"})
    head = made.commit("Title", {"a": "2"})
    made.git("-c", "user.name=a", "-c", "user.email=a@b", "tag", "-a", "v1", "-m", "one", base)
    made.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    made.git("update-ref", "--no-deref", "HEAD", head)
    expected = mine(made, base=base, head=head)
    assert mine(made, base="v1") == expected
    assert mine(tmp_path / "bare", base="v1", head="main") == expected


def test_mine_impossible_panels_are_clear_errors(new_repository, mine, tmp_path):
    """Unknown, empty and unrelated ranges, bad patterns and cut-off histories say what to do."""
    made = new_repository()
    base = made.commit("start", {"a": "1"})
    side = made.commit("side", {"a": "2"}, branch="side", parents=[base])
    made.commit("main", {"a": "3"})
    with pytest.raises(RepositoryError, match=r"unknown revision 'mian'.*nearest: main"):
        mine(made, base="mian")
    with pytest.raises(RepositoryError, match="is empty"):
        mine(made, base="main", head="main")
    with pytest.raises(RepositoryError, match=f"not an ancestor.*common ancestor is {base}"):
        mine(made, base=side, head="main")
    with pytest.raises(PanelError, match="exclude_gold"):
        mine(made, base=base, exclude_gold=("!",))
    with pytest.raises(ValueError, match='base = "parent"'):
        PanelConfig(kind="commit-files", repo=".", base="main", last=5)
    made.git("clone", "-q", "--depth=1", f"file://{made.path}", str(tmp_path / "shallow"))
    with pytest.raises(RepositoryError, match="shallow clone"):
        mine(tmp_path / "shallow", base="HEAD")


@pytest.mark.parametrize(
    ("clock", "date"),
    [
        (b"", "1970-01-01T00:00:00Z"),
        (b" soon", "1970-01-01T00:00:00Z"),
        (b" 253402300800 +0000", "9999-12-31T23:59:59Z"),
        (b" 99999999999999999999999 +0000", "9999-12-31T23:59:59Z"),
    ],
)
def test_mine_commit_with_a_broken_clock_has_a_date_all_the_same(new_repository, mine, clock, date):
    """Old importers wrote commits without a time, or with one that no calendar has."""
    made = new_repository()
    base = made.commit("start", {"a": "1"})
    tip = made.commit("two", {"a": "2"})
    raw = made.git("cat-file", "commit", tip).encode() + b"\n"
    broken = re.sub(rb"(?m)^(committer .*>).*$", lambda found: found[1] + clock, raw)
    commit = made.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=broken)
    assert [task.date for task in mine(made, base=base, head=commit).tasks] == [date]


@pytest.mark.parametrize(
    ("name", "email", "expected"),
    [
        ("dependabot[bot]", "49699333+dependabot[bot]@users.noreply.github.com", True),
        ("Renovate Bot", "bot@renovateapp.com", True),
        ("pre-commit-ci[bot]", "x@y", True),
        ("GitHub", "github-actions@github.com", True),
        ("release-bot", "x@y", True),
        ("Ann Abbot", "ann@example.org", False),
        ("Michal", "michal@weblate.org", False),
        ("Botond", "botond@example.org", False),
    ],
)
def test_is_bot_programs_and_people_are_told_apart(name, email, expected):
    """An employer's domain or a surname makes nobody a bot."""
    assert is_bot(name, email) is expected
