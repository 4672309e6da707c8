"""Which file at base a path of a later commit is.

A rename carries the name at base along; the old name then means a file that base does not have,
even when it is used again. A copy is a new file. A deletion changes nothing: the commit that
deletes a file touches it, and one that creates it again under the same name brings it back.

Each commit sees the renames among its own ancestors only, so that a branch that has not seen a
rename still means the old file by the old name. Renames made while merging are not seen. Where
both sides of a merge renamed one file, the later one in the log's order holds.
"""

from __future__ import annotations

from collections.abc import Collection

from coldrun.tasks.lib.git.commit_log import Change, LogEntry


class NamesAtBase:
    """The renames since base, taken in commit by commit, parents first.

    Args:
        base_paths: Every file that base has.
    """

    def __init__(self, base_paths: Collection[bytes]) -> None:
        self._base_paths = base_paths
        # For each path, the renames that gave or took the name: (number, name at base or None).
        self._events: dict[bytes, list[tuple[int, bytes | None]]] = {}
        # For each commit, the numbers of the renaming commits it descends from, as bits.
        self._seen: dict[str, int] = {}
        self._count = 0
        self.renamed_paths: Collection[bytes] = self._events.keys()
        """The paths whose meaning depends on the commit; any other means itself."""

    def add(self, entry: LogEntry) -> int:
        """Take in a commit; returns what it has seen, to ask `find` about its own changes."""
        seen = 0
        for parent in entry.parents:
            seen |= self._seen.get(parent, 0)
        renames = [change for change in entry.changes if change[0] == "R"]
        after = seen
        if renames and self._record(renames, seen):
            after |= 1 << self._count
            self._count += 1
        if after:
            self._seen[entry.commit] = after
        return seen

    def find(self, seen: int, path: bytes) -> bytes | None:
        """The name at base of the file `path` was to a commit that has `seen` so much, or None."""
        for number, name in reversed(self._events.get(path, ())):
            if seen >> number & 1:
                return name
        return path if path in self._base_paths else None

    def _record(self, renames: list[Change], seen: int) -> bool:
        # All names are looked up, then all sources given up, then all targets taken: a commit
        # may rename b to c and a to b at once.
        taken = [(change.path, self.find(seen, change.source or b"")) for change in renames]
        given_up: list[tuple[bytes, bytes | None]] = [
            (change.source or b"", None) for change in renames
        ]
        is_recorded = False
        for path, name in given_up + taken:
            if name is not None or path in self._base_paths or path in self._events:
                self._events.setdefault(path, []).append((self._count, name))
                is_recorded = True
        return is_recorded
