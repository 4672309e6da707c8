"""A git repository, read through one module and in streams, never one call per commit."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coldrun.tasks.lib.errors import RepositoryError
from coldrun.tasks.lib.git.commit_log import (
    FOLLOW_RENAMES,
    IGNORE_RENAMES,
    LOG_OPTIONS,
    MESSAGE_OPTIONS,
    LogEntry,
    parse_log,
)
from coldrun.tasks.lib.git.git_command import (
    GitStream,
    describe_failure,
    read_git,
    repository_options,
    run_git,
)
from coldrun.tasks.lib.git.path_text import encode_path
from coldrun.tasks.lib.records import Revision

EntryKind = Literal["file", "symlink", "submodule"]
Merges = Literal["without-diff", "first-parent"]

_KINDS: dict[str, EntryKind] = {"120000": "symlink", "160000": "submodule"}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of a tree, folders left out.

    `path` is `raw_path` as text, by the rule of `path_text`. `object_id` names a blob, or the
    commit of a submodule.
    """

    path: str
    raw_path: bytes
    mode: str
    kind: EntryKind
    object_id: str


class Repository:
    """A repository opened for reading. Calls may come from several threads at once.

    `git_dir` is the git directory (of the linked worktree, where it is one).
    """

    def __init__(self, git_dir: Path, *, is_shallow: bool = False, hex_length: int = 40) -> None:
        self.git_dir = git_dir
        self._is_shallow = is_shallow
        self._hex_length = hex_length
        self._paths: dict[str, Path] = {}
        self._options = repository_options(git_dir, hex_length)

    @classmethod
    def open(cls, path: Path) -> Repository:
        """Open the repository at `path`: a work tree or a folder in one, or a bare repository."""
        if not path.exists():
            raise RepositoryError(f"there is nothing at {path}; check the path of the repository")
        directory = path if path.is_dir() else path.parent
        if not os.access(directory, os.X_OK):
            raise RepositoryError(f"{directory} may not be entered; check its permissions")
        # Whoever owns the files: only objects are read, and no hook or helper runs.
        status, output, complaint = run_git(
            [
                *("-c", "safe.directory=*", "rev-parse", "--path-format=absolute"),
                *("--git-dir", "--is-shallow-repository", "--show-object-format"),
            ],
            directory=directory,
        )
        if status != 0:
            if "not a git repository" in complaint:
                raise RepositoryError(
                    f"{path} is not a git repository; name a clone, a bare repository or a URL"
                )
            raise RepositoryError(f"cannot open {path} as a repository: {complaint}")
        git_dir, shallow, object_format = os.fsdecode(output).rstrip("\n").rsplit("\n", 2)
        return cls(
            Path(git_dir),
            is_shallow=shallow == "true",
            hex_length=64 if object_format == "sha256" else 40,
        )

    def __repr__(self) -> str:
        return f"Repository({str(self.git_dir)!r})"

    def refuse_incomplete(self) -> None:
        """Refuse a repository whose history or objects are not all here."""
        if self._is_shallow:
            raise RepositoryError(
                f"{self.git_dir} is a shallow clone, whose history is cut off; "
                "run `git fetch --unshallow` in it and try again"
            )
        if self.is_partial():
            raise RepositoryError(
                f"{self.git_dir} is a partial clone, whose objects are not all here; "
                "clone it again without --filter and try again"
            )

    def is_partial(self) -> bool:
        """Whether it is a partial clone, whose objects are not all here."""
        promises = r"^(extensions\.partialclone|remote\..*\.promisor)$"
        return bool(self._try("config", "--get-regexp", promises)[1].strip())

    def resolve(self, revision: str) -> Revision:
        """The commit and tree that `revision` names; an annotated tag means its commit."""
        if not revision or revision.startswith("-") or "\0" in revision:
            raise self._unknown_revision(revision)
        asked = (f"{revision}^{{commit}}", f"{revision}^{{tree}}", "--")
        status, output, _ = self._try("rev-parse", *asked)
        found = output.decode("utf-8", "replace").split()
        if status != 0 or len(found) != len(asked):  # A range is more names than one.
            raise self._unknown_revision(revision)
        return Revision(commit=found[0], tree=found[1])

    def has_commit(self, revision: str) -> bool:
        """Whether `revision` names a commit of this repository."""
        try:
            self.resolve(revision)
        except RepositoryError:
            return False
        return True

    def is_empty(self) -> bool:
        """Whether nothing was ever committed: HEAD names no commit, and no branch or tag exists."""
        return not self.has_commit("HEAD") and not self._read("for-each-ref", "--count=1").strip()

    def is_ancestor(self, base: str, head: str) -> bool:
        """Whether the commit `base` can be reached from `head` (a commit reaches itself)."""
        status, _ = self._merge_base("--is-ancestor", base, head)
        return status == 0

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor of two commits, None when they share no history."""
        _, output = self._merge_base(one, other)
        return output.decode("ascii").strip() or None

    def _merge_base(self, *arguments: str) -> tuple[int, bytes]:
        status, output, complaint = self._try("merge-base", *arguments)
        if status not in (0, 1):
            raise RepositoryError(describe_failure(("merge-base",), status, complaint))
        return status, output

    def list_tree(self, tree: str) -> tuple[TreeEntry, ...]:
        """Files, symbolic links and submodules below `tree`, in git's order (by bytes of path)."""
        output = self._read("ls-tree", "-r", "-z", "--full-tree", tree)
        return tuple(_parse_tree_line(line) for line in output.split(b"\0") if line)

    def read_file(self, tree: str, path: str) -> bytes:
        """The bytes of a file of a tree; none where there is no such file."""
        status, content, _ = self._try("cat-file", "blob", f"{tree}:{path}")
        return content if status == 0 else b""

    def find_files(self, places: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether there is a file at each place, a commit and a path in it, from one process."""
        asked = (f"{commit}:{path}\n".encode() for commit, path in places if "\n" not in path)
        with self._stream(["cat-file", "--batch-check"], stdin=asked) as stream:
            said = iter(b"".join(stream.chunks()).split(b"\n"))
        return ["\n" not in path and b" blob " in next(said) for _, path in places]

    def stream_log(
        self,
        revisions: Sequence[str],
        *,
        follow_renames: bool = True,
        merges: Merges = "without-diff",
        first_parent: bool = False,
        last: int | None = None,
        oldest_first: bool = False,
    ) -> Iterator[LogEntry]:
        """The commits of a range from one `git log`; a revision that begins with ^ cuts it off.

        Renames are found at 50 % similarity, without a limit on candidates.
        """
        arguments = ["log", *LOG_OPTIONS, "--topo-order" if last is None else "--date-order"]
        arguments += FOLLOW_RENAMES if follow_renames else IGNORE_RENAMES
        arguments += ["--diff-merges=" + ("first-parent" if merges == "first-parent" else "off")]
        if first_parent:
            arguments.append("--first-parent")
        if last is not None:
            arguments.append(f"--max-count={last}")
        if oldest_first:
            arguments.append("--reverse")
        with (
            self._beside_attributes() as options,
            GitStream([*options, *arguments, *revisions, "--"], directory=self.git_dir) as stream,
        ):
            yield from parse_log(stream.chunks())

    def read_commits(self, commits: Sequence[str]) -> tuple[LogEntry, ...]:
        """These commits alone, in the order given, with their changes against the first parent."""
        if not commits:
            return ()
        arguments = ["log", *LOG_OPTIONS, "--no-walk=unsorted", *IGNORE_RENAMES]
        arguments += ["--diff-merges=first-parent", "--stdin"]
        lines = [f"{commit}\n".encode("ascii") for commit in commits]
        with self._stream(arguments, stdin=lines) as stream:
            return tuple(parse_log(stream.chunks()))

    def list_tags(self) -> tuple[str, ...]:
        """The names of all tags, in git's order."""
        output = self._read("for-each-ref", "--format=%(refname:strip=2)", "refs/tags/")
        return tuple(output.decode("utf-8", "surrogateescape").splitlines())

    def stream_messages(self, revisions: Sequence[str] = ()) -> Iterator[LogEntry]:
        """The commits that `revisions`, else all branches and HEAD, reach, without changes."""
        reached = revisions or ("HEAD", "--branches", "--remotes")
        with self._stream(["log", *MESSAGE_OPTIONS, *reached, "--"]) as stream:
            yield from parse_log(stream.chunks())

    def find_before(self, head: str, seconds: int) -> Revision | None:
        """The newest first-parent ancestor of `head` not after `seconds` since 1970 in UTC."""
        options = ("--first-parent", "--no-color", f"--min-age={seconds}", "--max-count=1")
        line = self._read("log", *options, "--format=tformat:%H %T", head, "--").decode("ascii")
        if not line.strip():
            return None
        commit, tree = line.split()
        return Revision(commit=commit, tree=tree)

    def stream_changed_paths(self, head: str, *, last: int) -> Iterator[bytes]:
        """The path of every change in the `last` commits up to `head`, merges left out.

        A path comes once for each commit that changed it. Renames are not followed.
        """
        arguments = ["log", "-z", "--name-only", "--no-renames", "--format=", "--no-color"]
        arguments += ["--root", "--no-merges", "--no-relative", "--ignore-submodules=none"]
        with self._stream([*arguments, f"--max-count={last}", head, "--"]) as stream:
            rest = b""
            for chunk in stream.chunks():
                *paths, rest = (rest + chunk).split(b"\0")
                yield from paths

    @contextmanager
    def _beside_attributes(self) -> Iterator[Sequence[str]]:
        """Options under which no attribute, `info/attributes` included, decides what is text."""
        if not self._path_of("info/attributes").exists():
            yield self._options
            return
        object_format = "sha1" if self._hex_length == 40 else "sha256"
        init = ("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}")
        with tempfile.TemporaryDirectory(prefix="coldrun-git-") as folder:
            read_git([*init, folder])
            borrowed = os.fsencode(self._path_of("objects")) + b"\n"
            (Path(folder) / "objects" / "info" / "alternates").write_bytes(borrowed)
            yield repository_options(Path(folder), self._hex_length)

    def _path_of(self, name: str) -> Path:
        if name not in self._paths:
            found = self._read("rev-parse", "--path-format=absolute", "--git-path", name)
            self._paths[name] = Path(os.fsdecode(found).removesuffix("\n"))
        return self._paths[name]

    def _stream(self, arguments: Sequence[str], stdin: Iterable[bytes] | None = None) -> GitStream:
        return GitStream([*self._options, *arguments], directory=self.git_dir, stdin=stdin)

    def _try(self, *arguments: str) -> tuple[int, bytes, str]:
        return run_git([*self._options, *arguments], directory=self.git_dir)

    def _read(self, *arguments: str) -> bytes:
        return read_git([*self._options, *arguments], directory=self.git_dir)

    def _unknown_revision(self, revision: str) -> RepositoryError:
        output = self._read("for-each-ref", "--format=%(refname)")
        names = [
            re.sub(r"^refs/(heads|tags|remotes)/", "", name)
            for name in output.decode("utf-8", "replace").splitlines()
        ]
        near = difflib.get_close_matches(revision, sorted({*names, "HEAD"}), n=3, cutoff=0.5)
        hint = f"nearest: {', '.join(near)}" if near else "fetch it, or check its spelling"
        if not names:
            hint = "the repository has no commits yet"
        elif self.is_partial():
            hint = "it is a partial clone, clone it again without --filter"
        return RepositoryError(f"unknown revision {revision!r} in {self.git_dir}; {hint}")


def _parse_tree_line(line: bytes) -> TreeEntry:
    meta, _, raw_path = line.partition(b"\t")
    mode, _, object_id = meta.decode("ascii").split(" ")
    return TreeEntry(encode_path(raw_path), raw_path, mode, _KINDS.get(mode, "file"), object_id)
