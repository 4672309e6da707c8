"""Tickets and the repositories their commits touch."""

from __future__ import annotations

import json
import subprocess

import pytest

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.errors import PanelError, RepositoryError
from coldrun.tasks.mine.ticket_log import compile_pattern
from coldrun.tasks.mine.ticket_repos import locate_repositories, mine_ticket_repos

PATTERN = r"[A-Z]+-\d+"
DAY = 86_400
FIRST = 1_577_836_800  # 2020-01-01


@pytest.fixture
def organisation(new_repository):
    """Three repositories whose commits name tickets."""
    api, web, shop = (new_repository(f"repos/{name}") for name in ("api", "web", "shop"))
    for made in (api, web):
        made.commit("start", {"a": "0"}, date=FIRST)
    shop.commit("start", {"a": "0"}, date=FIRST + 5 * DAY)
    api.commit("AB-1: Add the login", {"a": "1"}, date=FIRST + 10 * DAY)
    web.commit("Login form\n\nFixes: AB-1", {"a": "1"}, date=FIRST + 11 * DAY)
    web.commit("[AB-2] Move the button, see AB-3", {"a": "2"}, date=FIRST + 12 * DAY)
    shop.commit("cart (AB-3).", {"a": "1"}, branch="side", parents=[], date=FIRST + 13 * DAY)
    api.commit("Bump AB-4", {"a": "2"}, author="renovate[bot] <r@x>", date=FIRST + 14 * DAY)
    return {"api": api, "web": web, "shop": shop}


@pytest.fixture
def mine_tickets(tmp_path):
    """Mine the repositories below the test's folder."""

    def run(**panel):
        panel.setdefault("repos", ("repos/*",))
        panel.setdefault("ticket_pattern", PATTERN)
        spec = PanelConfig(kind="ticket-repos", **panel)
        return mine_ticket_repos(spec, config_dir=tmp_path, scratch=tmp_path / "scratch")

    return run


def gold(panel):
    """Queries with their gold."""
    return {task.query: [item.item for item in task.gold] for task in panel.tasks}


def check_sum(panel):
    """Drops and tasks are all candidates."""
    assert panel.candidates == len(panel.tasks) + sum(panel.drops.values())


def test_mine_tickets_derived_text_has_no_ids_and_is_marked(organisation, mine_tickets):
    """The earliest commit gives the text; gold is every repository that names the ticket."""
    panel = mine_tickets()
    # AB-3 is first named by the commit that also names AB-2, so its text is a duplicate.
    assert gold(panel) == {"Add the login": ["api", "web"], "Move the button, see": ["web"]}
    assert {task.strata["text"] for task in panel.tasks} == {"derived"}
    assert all(task.answer == "set" for task in panel.tasks)
    assert panel.drops["duplicate"] == 1
    check_sum(panel)
    assert panel.items == ("api", "shop", "web")
    assert any("hold the work" in note for note in panel.notes)


def test_mine_tickets_file_gives_text_date_and_empty_gold(organisation, mine_tickets, tmp_path):
    """Titles and bodies are the questions; tickets that no commit names stay when asked to."""
    (tmp_path / "tickets.csv").write_bytes(
        b"\xef\xbb\xbfid,title,body,created\r\n"
        b'AB-1,Users log in,"with a\r\npassword",2020-01-05\r\n'
        b"AB-2,Button,,\r\nAB-3,Cart and button,,2020-01-06T00:00:00+01:00\r\n"
        b"AB-9,Already deployed,,2020-02-01\r\n"
    )
    panel = mine_tickets(tickets="tickets.csv")
    assert gold(panel) == {
        "Cart and button": ["shop", "web"],
        "Users log in\n\nwith a\npassword": ["api", "web"],
        "Button": ["web"],
    }
    assert panel.drops["no_file"] == 1
    dates = {task.query[:6]: task.date for task in panel.tasks}
    assert dates == {
        "Button": "2020-01-13T00:00:00Z",
        "Cart a": "2020-01-05T23:00:00Z",
        "Users ": "2020-01-05T00:00:00Z",
    }
    kept = mine_tickets(tickets="tickets.csv", keep_unnamed_tickets=True)
    assert gold(kept)["Already deployed"] == []
    assert kept.tasks[0].query == "Already deployed"
    assert kept.tasks[0].strata == {"text": "given", "repositories": "none"}
    check_sum(panel)
    check_sum(kept)


def test_mine_tickets_base_date_freezes_trees_before_the_work(organisation, mine_tickets):
    """Trees are the last commits up to base; tickets begun before it are no candidates."""
    organisation["api"].commit("AB-2 too", {"a": "9"}, date=FIRST + 20 * DAY)
    panel = mine_tickets(base="2020-01-11T12:00:00")
    assert gold(panel) == {"Move the button, see": ["api", "web"]}
    assert panel.corpora["web"].commit == organisation["web"].git("rev-parse", "main~2")
    assert panel.corpora["api"].commit == organisation["api"].git("rev-parse", "main~2")
    assert any("1 ticket named before base is left out" in note for note in panel.notes)
    early = mine_tickets(base="2020-01-02")
    assert "shop" not in early.items
    check_sum(early)
    check_sum(panel)


def test_mine_tickets_head_date_ends_the_range(organisation, mine_tickets):
    """Later commits name nothing."""
    assert gold(mine_tickets(head="2020-01-12T12:00:00")) == {"Add the login": ["api", "web"]}


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        ({"base": "2021-01-01"}, r"no ticket after base 2021-01-01 .*\(3 were named by then\)"),
        ({"base": "2020-01-12", "head": "2020-01-11"}, r"2020-01-12\.\.2020-01-11 is empty"),
        ({"base": "2019-01-01"}, r"no commit up to base 2019-01-01 in 3 repositories"),
    ],
)
def test_mine_tickets_dates_that_leave_nothing_are_named(
    organisation, mine_tickets, tmp_path, dates, message
):
    """The ids of the tickets file are not what is wrong then."""
    (tmp_path / "t.csv").write_text("id,title\nAB-1,Login\n")
    for more in ({}, {"tickets": "t.csv", "keep_unnamed_tickets": True}):
        with pytest.raises(PanelError, match=message):
            mine_tickets(**dates, **more)


def test_mine_tickets_one_branch_leaves_out_the_others(organisation, mine_tickets):
    """A named branch is read alone, and has to be everywhere."""
    panel = mine_tickets(branch="main")
    assert all("shop" not in items for items in gold(panel).values())
    with pytest.raises(RepositoryError, match="api has no branch 'side'"):
        mine_tickets(branch="side")


def test_mine_tickets_hash_numbers_meet_plain_ids(new_repository, mine_tickets, tmp_path):
    """#12 in a message is ticket 12 of the file, #123 is not."""
    made = new_repository("repos/one")
    made.commit("start", {"a": "0"})
    made.commit("fix #12, other/repo#14 and #123x", {"a": "1"})
    lines = [{"id": "12", "title": "twelve"}, {"id": "#14", "title": "fourteen"}]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    panel = mine_tickets(ticket_pattern=r"#\d+", tickets="t.jsonl")
    assert gold(panel) == {"twelve": ["one"]}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (None, "`ticket_pattern` is missing"),
        ("", "`ticket_pattern` is missing"),
        ("(", "is not a regular expression"),
        (r"\d*", "matches the empty text"),
        (r"ZZ-\d+", r"matches none of \d+ commits in 1 repository"),
        (r"\w+", "matches nearly everything"),
        (".+", "matches nearly everything"),
        ("edit", "matches nearly everything: 'edit' is named by"),
    ],
)
def test_mine_tickets_pattern_that_says_nothing_is_refused(
    new_repository, mine_tickets, pattern, message
):
    """Nothing, everything and no pattern at all are each one clear line."""
    made = new_repository("repos/one")
    for number in range(30):
        made.commit(f"AB-{number} edit this and that here once more\n\nBody too", {"a": "1"})
    with pytest.raises(PanelError, match=message):
        mine_tickets(ticket_pattern=pattern)
    assert len(mine_tickets().tasks) == 1  # A ticket in every commit is a habit, not a mistake.


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "id,title,color\n1,a,b\n", r"t.csv:1: unknown column 'color'; the first line"),
        ("t.csv", "id,body\n1,a\n", r"t.csv:1: no column 'title'; the first line names"),
        ("t.csv", "id;title\nAB-1;a\n", r"t.csv:1: unknown column 'id;title'; .* with commas"),
        ("t.csv", "id,title\nAB-1,a\0b\n", r"t.csv:2: `title` has a NUL character"),
        ("t.csv", "id,title,created\nAB-1,a,0001-01-01T00:00+14:00\n", r"must be an ISO 8601"),
        ("t.jsonl", '{"id":"AB-1","title":"a\\ud800"}\n', r"half of a surrogate pair"),
        ("t.csv", "id,title,id\n1,a,2\n", r"t.csv:1: column 'id' twice"),
        ("t.csv", "id,title\nAB-1,a\nAB-1,b\n", r"t.csv:3: ticket 'AB-1' twice, first at .*:2"),
        ("t.csv", "id,title\n#7,a\n7,b\n", r"t.csv:3: ticket '7' twice"),
        ("t.csv", "id,title\nAB-1\n", r"t.csv:2: 1 fields where the header has 2"),
        ("t.csv", 'id,title\nAB-1,"a\n', r"not valid CSV"),
        ("t.csv", "id,title,created\nAB-1,a,soon\n", r"t.csv:2: `created` must be an ISO 8601"),
        ("t.csv", "id,title\n", "has no tickets"),
        ("t.csv", "id,title\nXY-1,a\n", r"none of which is in t.csv"),
        ("t.jsonl", '{"id":"AB-1","title":"a"}\r\n', "CRLF line ends"),
        ("t.jsonl", '{"id":"AB-1","titel":"a"}\n', r"t.jsonl:1: `title` is missing"),
        ("t.txt", "x", r"tickets are read from .csv or .jsonl"),
    ],
)
def test_mine_tickets_wrong_file_is_one_line_with_its_place(
    organisation, mine_tickets, tmp_path, name, content, message
):
    """The error names file and line."""
    (tmp_path / name).write_bytes(content.encode())
    with pytest.raises(PanelError, match=message):
        mine_tickets(tickets=name)


def test_locate_repositories_names_have_to_differ(new_repository, tmp_path):
    """Two folders of one name cannot be told apart in an answer."""
    for place in ("x/api", "y/api"):
        new_repository(place).commit("start", {"a": "0"})
    spec = PanelConfig(kind="ticket-repos", repos=("x/api", "y/api"), ticket_pattern="x")
    with pytest.raises(PanelError, match="two repositories are named 'api'"):
        locate_repositories(spec, config_dir=tmp_path, scratch=tmp_path)


def test_locate_repositories_paths_urls_and_globs(new_repository, tmp_path):
    """Each repository once, by name; folders that are none do not match a glob."""
    one, two = new_repository("repos/one"), new_repository("repos/two.git", bare=True)
    for made in (one, two):
        made.commit("start", {"a": "0"})
    (tmp_path / "repos" / "folder").mkdir()
    three = new_repository("elsewhere/three")
    three.commit("start", {"a": "0"})
    repos = ("repos/*", "repos/one", f"file://{three.path}")
    spec = PanelConfig(kind="ticket-repos", repos=repos, ticket_pattern="x")
    found = locate_repositories(spec, config_dir=tmp_path, scratch=tmp_path / "scratch")
    assert list(found) == ["one", "three", "two"]
    for repos, error in (((("no/*"),), PanelError), (("repos/folder",), RepositoryError)):
        spec = PanelConfig(kind="ticket-repos", repos=repos, ticket_pattern="x")
        with pytest.raises(error):
            locate_repositories(spec, config_dir=tmp_path, scratch=tmp_path)


def test_compile_pattern_ids_end_at_word_boundaries():
    """A ticket is found whole or not at all."""
    pattern = compile_pattern(r"[A-Z]+-\d+|#\d+")
    text = "AB-1, (AB-22) xAB-3 AB-4x #5 a#6 #7a feature/AB-8"
    assert [match[0] for match in pattern.finditer(text)] == ["AB-1", "AB-22", "#5", "AB-8"]


def test_compile_pattern_flags_at_its_start_hold_for_all_of_it():
    """Between boundaries they would not be at the start any more."""
    assert compile_pattern(r"(?i)ab-\d+").findall("AB-1 ab-2 xab-3") == ["AB-1", "ab-2"]


def test_mine_tickets_that_ignore_case_are_one_ticket_in_any_spelling(
    organisation, mine_tickets, tmp_path
):
    """A pattern that does not care about case makes "ab-1" and "AB-1" one id, as trackers do."""
    organisation["shop"].commit("ab-2 in the shop", {"a": "9"}, date=FIRST + 15 * DAY)
    (tmp_path / "t.csv").write_text("id,title\nAb-2,Button\n")
    panel = mine_tickets(ticket_pattern=r"(?i)[a-z]+-\d+", tickets="t.csv")
    assert gold(panel) == {"Button": ["shop", "web"]}
    derived = mine_tickets(ticket_pattern=r"(?i)[a-z]+-\d+")
    assert gold(derived)["Move the button, see"] == ["shop", "web"]


def test_mine_tickets_group_named_id_may_be_left_out_of_a_match(organisation, mine_tickets):
    """Of several ways to write a ticket, one may name its id and another not."""
    panel = mine_tickets(ticket_pattern=r"#(?P<id>\d+)|AB-\d+")
    assert gold(panel) == gold(mine_tickets())


def test_locate_repositories_glob_finds_hidden_repositories(new_repository, tmp_path):
    """An organisation's `.github` is one of its repositories; the `.git` beside it is none."""
    for name in (".github", "api"):
        new_repository(f"org/{name}").commit("start", {"a": "0"})
    git = new_repository("org/.git")
    git.commit("start", {"a": "0"})
    spec = PanelConfig(kind="ticket-repos", repos=("org/*", "org/*/*"), ticket_pattern=PATTERN)
    with pytest.raises(PanelError, match="no repository matches 'org/\\*/\\*'"):
        locate_repositories(spec, config_dir=tmp_path, scratch=tmp_path / "scratch")
    spec = spec.model_copy(update={"repos": ("org/*",)})
    found = locate_repositories(spec, config_dir=tmp_path, scratch=tmp_path / "scratch")
    assert list(found) == [".github", "api"]


@pytest.mark.parametrize("others", [0, 5])
def test_mine_tickets_repository_without_commits_is_left_out_and_counted(
    organisation, mine_tickets, tmp_path, others
):
    """It names no ticket and has no tree; the other repositories give the panel all the same."""
    before = mine_tickets(base="2020-01-08")
    for number in range(others + 1):
        subprocess.run(["git", "init", "-q", tmp_path / f"repos/new{number}"], check=True)
    panel = mine_tickets(base="2020-01-08")
    assert (panel.tasks, panel.corpora) == (before.tasks, before.corpora)
    assert panel.items == before.items
    expected = (
        "6 repositories without a commit cannot be an answer and are left out: "
        "new0, new1, new2, new3, new4 and 1 more"
        if others
        else "1 repository without a commit cannot be an answer and is left out: new0"
    )
    assert panel.notes == (expected, *before.notes)
    with pytest.raises(RepositoryError, match="has no branch"):
        mine_tickets(branch="side")


def test_locate_repositories_in_a_folder_whose_name_looks_like_a_pattern(new_repository, tmp_path):
    """Only what the configuration says is a glob."""
    new_repository("team[1]/repos/one").commit("start", {"a": "0"})
    spec = PanelConfig(kind="ticket-repos", repos=("repos/*",), ticket_pattern="x")
    found = locate_repositories(spec, config_dir=tmp_path / "team[1]", scratch=tmp_path)
    assert list(found) == ["one"]


def test_mine_tickets_parallel_processes_give_what_one_gives(
    new_repository, mine_tickets, monkeypatch
):
    """Reading many repositories at once changes nothing but the time it takes."""
    for number in range(5):
        made = new_repository(f"repos/r{number}")
        made.commit("start", {"a": "0"})
        for ticket in range(number + 1):
            made.commit(f"AB-{ticket} part {ticket}", {"a": str(ticket)})
    parallel = mine_tickets()
    monkeypatch.setattr("coldrun.tasks.mine.ticket_repos._PARALLEL_REPOSITORIES", 100)
    assert mine_tickets() == parallel
    assert gold(parallel)["part 3"] == ["r3", "r4"]


def test_mine_tickets_error_in_a_process_is_the_same_one_line(new_repository, mine_tickets):
    """What goes wrong elsewhere is told here."""
    for number in range(5):
        new_repository(f"repos/r{number}").commit("start", {"a": "0"})
    with pytest.raises(RepositoryError, match="r0 has no branch 'nope'"):
        mine_tickets(branch="nope")
