"""Reading real repositories."""

from __future__ import annotations

import os
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.clone import ensure_clone, is_url, open_source
from coldrun.tasks.lib.git.commit_log import parse_log
from coldrun.tasks.lib.git.git_command import GitStream, repository_options
from coldrun.tasks.lib.git.path_text import encode_path
from coldrun.tasks.lib.git.repository import Repository


def decode_path(path: str) -> bytes:
    """The path that `encode_path` wrote as `path`, by the rule in its module."""
    decoded = urllib.parse.unquote_to_bytes(path)
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError:
        return decoded
    return path.encode("utf-8") if encode_path(text.encode("utf-8")) == text else decoded


ODD_PATHS = [
    b"a b.txt",
    b'q"uote.txt',
    b"new\nline.txt",
    b"tab\t.txt",
    b"caf\xe9.txt",
    "café.txt".encode(),
    b"100%.txt",
    b"caf%E9.txt",
    b":colon",
    b"-dash",
    b"back\\slash",
]


def test_open_any_kind_of_place_finds_the_repository(new_repository, tmp_path):
    """A work tree, a folder in it, a bare clone and a linked worktree all open."""
    made = new_repository()
    commit = made.commit("start", {"sub/a.txt": "a"})
    made.git("reset", "-q", "--hard")
    made.git("worktree", "add", "-q", str(tmp_path / "linked"))
    made.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    for place in ("repository", "repository/sub", "linked", "bare.git"):
        assert Repository.open(tmp_path / place).resolve("HEAD").commit == commit


def test_open_no_repository_says_so(tmp_path):
    """An empty folder and a missing one are told apart."""
    with pytest.raises(RepositoryError, match="is not a git repository"):
        Repository.open(tmp_path)
    with pytest.raises(RepositoryError, match="nothing at"):
        Repository.open(tmp_path / "missing")


def test_open_somebody_elses_repository_is_read(new_repository):
    """Ownership does not matter to a reader that runs no hook."""
    made = new_repository()
    commit = made.commit("start", {"a": "a"})
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for folder, _, files in os.walk(made.path):
        for name in (".", *files):
            os.chown(Path(folder) / name, 12345, 12345)
    assert Repository.open(made.path).resolve("HEAD").commit == commit


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--depth=1",), r"shallow clone.*fetch --unshallow"),
        (("--bare", "--filter=blob:none"), r"partial clone.*without --filter"),
    ],
)
def test_refuse_incomplete_clone_names_the_cure(new_repository, tmp_path, options, words):
    """Without all commits or objects it is refused, before git fetches them by itself."""
    made = new_repository()
    made.commit("one", {"a": "1"})
    made.commit("two", {"a": "2"})
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("clone", "-q", *options, f"file://{made.path}", str(tmp_path / "clone"))
    with pytest.raises(RepositoryError, match=words):
        Repository.open(tmp_path / "clone").refuse_incomplete()


def test_resolve_tag_short_name_and_detached_head_mean_the_commit(new_repository):
    """Whatever git takes for a commit is one, in full length."""
    made = new_repository()
    commit = made.commit("start", {"a": "a"})
    made.git("-c", "user.name=a", "-c", "user.email=a@b", "tag", "-a", "v1", "-m", "one", commit)
    made.git("update-ref", "--no-deref", "HEAD", commit)
    repository = Repository.open(made.path)
    for name in ("v1", commit[:8], "HEAD", "main", "main~0"):
        assert repository.resolve(name).commit == commit
    assert repository.resolve("HEAD").tree == made.git("rev-parse", "HEAD^{tree}")


@pytest.mark.parametrize("name", ["mian", "", "-h", "--all", "HEAD:a", "a\0b", "HEAD..main"])
def test_resolve_unknown_revision_is_one_clear_error(new_repository, name):
    """What is no commit is refused, even when it looks like an option or a range."""
    made = new_repository()
    made.commit("start", {"a": "a"})
    with pytest.raises(RepositoryError, match="unknown revision"):
        Repository.open(made.path).resolve(name)


def test_resolve_misspelt_branch_names_the_nearest(new_repository):
    """A typing mistake is answered with the name that was meant."""
    made = new_repository()
    made.commit("start", {"a": "a"})
    with pytest.raises(RepositoryError, match="nearest: main"):
        Repository.open(made.path).resolve("mian")


def test_resolve_in_a_repository_without_commits_says_so(new_repository):
    """A fresh repository has no HEAD to speak of."""
    with pytest.raises(RepositoryError, match="no commits yet"):
        Repository.open(new_repository().path).resolve("HEAD")


def test_list_tree_odd_names_come_back_whole(new_repository):
    """Every file name survives, as bytes and as text that can be read back."""
    made = new_repository()
    commit = made.commit("start", dict.fromkeys(ODD_PATHS, "x"))
    entries = Repository.open(made.path).list_tree(commit)
    assert sorted(entry.raw_path for entry in entries) == sorted(ODD_PATHS)
    assert len({entry.path for entry in entries}) == len(ODD_PATHS)
    assert all(decode_path(entry.path) == entry.raw_path for entry in entries)


def test_list_tree_kinds_are_told_apart(new_repository):
    """Files, programs, symbolic links and submodules each say what they are."""
    made = new_repository()
    target = made.commit("start", {"a": "a"})
    made.commit(
        "kinds",
        {"run": ("100755", "x"), "link": ("120000", "a"), "lib": ("160000", target)},
    )
    kinds = {e.path: (e.mode, e.kind) for e in Repository.open(made.path).list_tree("HEAD")}
    assert kinds == {
        "a": ("100644", "file"),
        "run": ("100755", "file"),
        "link": ("120000", "symlink"),
        "lib": ("160000", "submodule"),
    }


def test_git_stream_left_in_good_order_before_the_end_does_not_wait(new_repository):
    """Leaving the block with output unread ends git instead of waiting for it."""
    made = new_repository()
    made.commit("start", {"a": "x" * 1_000_000})
    options = repository_options(made.path / ".git")
    with GitStream([*options, "cat-file", "blob", "HEAD:a"]) as stream:
        assert stream.stdout.read(10) == b"x" * 10


def test_stream_log_odd_commits_are_read_field_by_field(new_repository):
    """Root, empty, multi-line, odd-named, mode-only, renaming and octopus commits all parse."""
    made = new_repository()
    root = made.commit("root\n\nbody\n:100644 looks raw", {b"caf\xe9": "x" * 100, "m": "1"})
    empty = made.commit("")
    made.commit("mode", {"m": ("100755", "1")})
    renamed = made.commit("rename", {b"caf\xe9": None, "new\nname": "x" * 100})
    sides = [made.commit(f"s{at}", {f"s{at}": "s"}, branch=f"s{at}", parents=[root]) for at in "12"]
    octopus = made.merge("octopus", *sides, files={"s1": "s", "s2": "s"})
    entries = {e.commit: e for e in Repository.open(made.path).stream_log([octopus])}
    assert entries[root].message.rstrip() == b"root\n\nbody\n:100644 looks raw"
    assert [change.status for change in entries[root].changes] == ["A", "A"]
    assert entries[empty].changes == ()
    rename = entries[renamed].changes[0]
    assert (rename.status, rename.source, rename.path) == ("R", b"caf\xe9", b"new\nname")
    assert entries[octopus].parents == (renamed, *sides)
    assert entries[octopus].changes == ()
    assert len(entries) == 7


def test_stream_log_first_parent_gives_what_a_merge_brought(new_repository):
    """Along first parents a merge is one change with the files of its branch."""
    made = new_repository()
    root = made.commit("root", {"a": "1"})
    made.commit("work", {"b": "1"}, branch="side", parents=[root])
    made.commit("more", {"c": "1"}, branch="side")
    head = made.merge("merge", made.git("rev-parse", "side"), files={"b": "1", "c": "1"})
    log = Repository.open(made.path).stream_log([head], merges="first-parent", first_parent=True)
    assert [(e.commit, [c.path for c in e.changes]) for e in log] == [
        (head, [b"b", b"c"]),
        (root, [b"a"]),
    ]


def test_repository_hostile_surroundings_change_nothing(new_repository, monkeypatch, tmp_path):
    """Configuration, replace refs, grafts and GIT_ variables leave the log as it is."""
    made = new_repository()
    made.commit("root", {"a": "x" * 200, "z": "1"})
    made.commit("second", {"a": None, "b": "x" * 200})
    head = made.commit("third", {"b": "y", "z": "2"})
    before = list(Repository.open(made.path).stream_log([head]))
    order = tmp_path / "order"
    order.write_text("z\n")
    for key, value in {
        "diff.renames": "false",
        "diff.noprefix": "true",
        "diff.orderFile": str(order),
        "diff.relative": "true",
        "log.showSignature": "true",
        "log.showRoot": "false",
        "log.date": "relative",
        "log.follow": "true",
        "log.mailmap": "true",
        "log.diffMerges": "combined",
        "color.ui": "always",
        "core.quotePath": "true",
        "core.abbrev": "4",
        "core.autocrlf": "true",
        "format.pretty": "oneline",
        "i18n.logOutputEncoding": "latin1",
    }.items():
        made.git("config", key, value)
    made.git("replace", head, f"{head}^")
    (made.path / ".git" / "info").mkdir(exist_ok=True)
    (made.path / ".git" / "info" / "grafts").write_text(f"{head}\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "nonsense")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert list(Repository.open(made.path).stream_log([head])) == before


def test_stream_log_attributes_of_a_work_tree_do_not_decide_renames(new_repository, tmp_path):
    """A clone with a work tree and a bare one agree on what is a rename."""
    made = new_repository()
    text = "".join(f"line {at}\r\n" for at in range(50))
    made.commit("root", {"a.txt": text, ".gitattributes": "*.txt binary\n"})
    head = made.commit("rename", {"a.txt": None, "b.txt": text.replace("\r", "")})
    made.git("reset", "-q", "--hard")
    made.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    logs = [list(Repository.open(p).stream_log([head])) for p in (made.path, tmp_path / "bare")]
    assert logs[0] == logs[1]


def test_stream_log_sha256_repository_reads_alike(new_repository):
    """Longer object names are only longer."""
    made = new_repository(object_format="sha256")
    made.commit("root", {"a": "1"})
    head = made.commit("second", {"a": None, "b": "1"})
    repository = Repository.open(made.path)
    log = list(repository.stream_log([repository.resolve("HEAD").commit]))
    assert len(head) == 64
    assert [change.status for change in log[0].changes] == ["R"]


def test_stream_log_failure_says_what_git_said(new_repository):
    """git's own reason is in the error."""
    made = new_repository()
    made.commit("root", {"a": "1"})
    with pytest.raises(RepositoryError, match=r"git log failed.*bad object"):
        list(Repository.open(made.path).stream_log(["1" * 40]))


@given(st.lists(st.integers(1, 40), max_size=20))
def test_parse_log_any_pieces_give_the_same_entries(sizes):
    """Where the stream happens to be cut does not matter."""
    ids = [b"%040d" % at for at in range(3)]
    zero = b"0" * 40
    raw = b":100644 100644 " + zero + b" " + zero
    stream = b"".join(
        [
            b"\0".join([ids[0], ids[1], ids[1] + b" " + ids[2], b"7", b"A", b"a@b", b"m\n", b""]),
            b"\n" + raw + b" M\0x\0" + raw + b" R100\0p\0q\0",
            b"\0".join([ids[1], ids[2], b"", b"8", b"", b"", b"", b""]),
        ]
    )
    pieces, at = [], 0
    for size in sizes:
        pieces.append(stream[at : at + size])
        at += size
    pieces.append(stream[at:])
    assert list(parse_log(p for p in pieces if p)) == list(parse_log([stream]))


@given(st.binary(min_size=1) | st.text(alphabet="%25EFaé", min_size=1).map(str.encode))
def test_encode_path_any_bytes_come_back(raw_path):
    """Every path has one text, and every text one path."""
    assert decode_path(encode_path(raw_path)) == raw_path


@pytest.mark.parametrize(
    ("raw_path", "path"),
    [
        (b"a%20b.md", "a%20b.md"),
        (b"100%", "100%"),
        (b"caf\xe9%", "caf%E9%25"),
        (b"caf%E9", "caf%25E9"),
        ("é%C3%A9".encode(), "é%C3%A9"),
    ],
)
def test_encode_path_ordinary_percent_signs_stand(raw_path, path):
    """Only what could be mistaken for an encoded path is touched."""
    assert encode_path(raw_path) == path


def test_ensure_clone_again_fetches_only_what_is_missing(new_repository, tmp_path):
    """One clone per address; a wanted revision that is missing, or asking, fetches."""
    made = new_repository()
    first = made.commit("one", {"a": "1"})
    url = f"file://{made.path}"
    clone = ensure_clone(url, tmp_path / "scratch")
    second = made.commit("two", {"a": "2"})
    assert ensure_clone(url, tmp_path / "scratch", wanted=[first]) == clone
    assert not Repository.open(clone).has_commit(second)
    ensure_clone(url, tmp_path / "scratch", wanted=[second])
    assert Repository.open(clone).resolve("main").commit == second
    third = made.commit("three", {"a": "3"})
    ensure_clone(url, tmp_path / "scratch", update=True)
    assert Repository.open(clone).resolve("HEAD").commit == third


def test_open_source_moving_name_means_what_it_means_now(new_repository, tmp_path):
    """HEAD of a URL is today's, not that of the day it was cloned; a run does not need the net."""
    source = new_repository("source", bare=True)
    first = source.commit("One", {"a.py": b"1"})
    url = source.path.as_uri()
    place = {"relative_to": tmp_path, "scratch": tmp_path / "scratch", "wanted": ["HEAD"]}
    assert open_source(url, **place).resolve("HEAD").commit == first
    second = source.commit("Two", {"a.py": b"2"})
    assert open_source(url, **place).resolve("HEAD").commit == first
    assert open_source(url, **place, is_fresh=True).resolve("HEAD").commit == second


def test_ensure_clone_bad_address_leaves_nothing(tmp_path):
    """A failure is one line that hides the password, and no folder stays."""
    with pytest.raises(RepositoryError, match="cannot clone") as caught:
        ensure_clone("https://me:secret@localhost:1/x", tmp_path)
    assert "secret" not in str(caught.value)
    assert list((tmp_path / "clones").iterdir()) == []


def test_open_source_path_or_url_gives_the_repository(new_repository, tmp_path):
    """A path counts from the given folder; a URL is cloned."""
    made = new_repository()
    commit = made.commit("one", {"a": "1"})
    for source in ("repository", str(made.path), f"file://{made.path}"):
        opened = open_source(source, relative_to=tmp_path, scratch=tmp_path / "scratch")
        assert opened.resolve("HEAD").commit == commit


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("https://example.org/a/b", True),
        ("git@example.org:a/b.git", True),
        ("example.org:a/b", True),
        ("file:///a", True),
        ("../a", False),
        ("./a:b", False),
        ("C:/a", False),
        ("~/a", False),
    ],
)
def test_is_url_addresses_and_paths_are_told_apart(source, expected):
    """Anything git would fetch over a transport is a URL."""
    assert is_url(source) is expected
