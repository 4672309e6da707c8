"""Names at base, against an obvious implementation that keeps a whole map per commit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.lib.git.commit_log import Change, LogEntry
from coldrun.tasks.mine.candidates import NamesAtBase

PATHS = [b"a", b"b", b"c", b"d", b"e"]
BASE = {b"a", b"b", b"c"}


def entry(commit, parents, changes):
    """A commit with some changes."""
    return LogEntry(commit, "", tuple(parents), 0, "", "", b"", tuple(changes))


def rename(source, path):
    """A rename of a file."""
    return Change("R", "100644", "100644", path, source)


class OracleTree:
    """What each commit has: a map from its paths to names at base, None for a later file."""

    def __init__(self):
        self.files = {"base": {path: path for path in BASE}}
        self.gone = {"base": {}}

    def apply(self, commit, parent, operations):
        """Do what can be done of `operations` and return the changes."""
        before = self.files[parent]
        files, gone = dict(before), dict(self.gone[parent])
        changes, touched = [], set()
        for kind, one, other in operations:
            if {one, other} & touched:
                continue
            if kind == "rename" and one in files and other not in files and one != other:
                files[other] = files.pop(one)
                gone[one] = None
                changes.append(rename(one, other))
                touched |= {one, other}
            elif kind == "delete" and one in files:
                gone[one] = files.pop(one)
                changes.append(Change("D", "100644", "000000", one, None))
                touched.add(one)
            elif kind == "add" and one not in files:
                files[one] = gone.get(one)
                changes.append(Change("A", "000000", "100644", one, None))
                touched.add(one)
        self.files[commit], self.gone[commit] = files, gone
        return changes


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["rename", "rename", "delete", "add"]),
        st.sampled_from(PATHS),
        st.sampled_from(PATHS),
    ),
    max_size=3,
)


@given(st.lists(st.tuples(st.integers(0, 3), OPERATIONS), max_size=12))
def test_find_any_branching_history_agrees_with_the_oracle(steps):
    """Each branch sees its own renames, files made again under old names are new ones."""
    oracle = OracleTree()
    names = NamesAtBase(BASE)
    commits = ["base"]
    for number, (back, operations) in enumerate(steps):
        parent = commits[-1 - back % len(commits)]
        commit = f"c{number}"
        before = oracle.files[parent]
        seen = names.add(entry(commit, [parent], oracle.apply(commit, parent, operations)))
        for path, expected in before.items():
            assert names.find(seen, path) == expected
        commits.append(commit)


def test_find_merge_knows_the_renames_of_both_sides():
    """After a merge both sides' renames are known, before it only one's own."""
    names = NamesAtBase(BASE)
    names.add(entry("left", ["base"], [rename(b"a", b"x")]))
    seen_right = names.add(entry("right", ["base"], [rename(b"b", b"y")]))
    seen = names.add(entry("after", ["left", "right"], []))
    assert (names.find(seen, b"x"), names.find(seen, b"y")) == (b"a", b"b")
    assert names.find(seen, b"a") is None
    assert names.find(seen_right, b"a") == b"a"


def test_find_names_swapped_round_in_one_commit_follow_the_files():
    """A commit may rename b to c and a to b at once."""
    names = NamesAtBase({b"a", b"b"})
    names.add(entry("one", ["base"], [rename(b"b", b"c"), rename(b"a", b"b")]))
    seen = names.add(entry("two", ["one"], []))
    assert [names.find(seen, path) for path in (b"a", b"b", b"c")] == [None, b"a", b"b"]


def test_find_deleted_and_made_again_is_the_same_file():
    """A file that comes back under its name is the one base has."""
    names = NamesAtBase({b"a"})
    names.add(entry("one", ["base"], [Change("D", "100644", "000000", b"a", None)]))
    seen = names.add(entry("two", ["one"], [Change("A", "000000", "100644", b"a", None)]))
    assert names.find(seen, b"a") == b"a"
