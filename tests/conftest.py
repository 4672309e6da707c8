"""Fixtures for all tests: git deaf to whoever runs them, and real repositories made quickly."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from coldrun.tasks.lib import concealment
from tests.server import prefect_server

__all__ = ["prefect_server"]

# How long an example takes says how busy the machine is, not whether the code is right.
EXAMPLES = 8 if os.environ.get("COLDRUN_TESTS") == "nightly" else 1
"""How many times as many examples as usual a property gets; `.ci/nightly` sets it."""

settings.register_profile(
    "patient",
    deadline=None,
    max_examples=40 * EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")

SYMLINK = "120000"
SUBMODULE = "160000"
EXECUTABLE = "100755"

Content = str | bytes | None | tuple[str, str | bytes]
"""A file's content; None removes it; a pair is a mode and the content, target or commit."""

_FIRST_DATE = 1_577_836_800  # 2020-01-01T00:00:00Z
_CLEAN_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


class RepositoryBuilder:
    """A real repository at `path`, whose commits have fixed authors and dates.

    Nothing is checked out: `commit` writes objects, and moves the branch, in one process.
    """

    def __init__(self, path: Path, *, bare: bool = False, object_format: str = "sha1") -> None:
        self.path = path
        self._tips: dict[str, str] = {}
        self._dates = iter(range(_FIRST_DATE, 1 << 62, 60))
        path.mkdir(parents=True)
        options = ["--bare"] if bare else []
        self.git("init", "-q", "-b", "main", f"--object-format={object_format}", *options)

    def git(self, *arguments: str | bytes, stdin: bytes = b"") -> str:
        """Run git in the repository and return its output without the last line end."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=stdin,
            env=os.environ | {"TZ": "UTC", "LC_ALL": "C"},
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            pytest.fail(f"git {arguments}: {done.stderr.decode('utf-8', 'replace')}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def commit(
        self,
        message: str | bytes = "a change",
        files: Mapping[str | bytes, Content] | None = None,
        *,
        branch: str = "main",
        parents: Sequence[str] | None = None,
        author: str = "Ada Lovelace <ada@example.org>",
        date: int | None = None,
    ) -> str:
        """Commit changes on top of `branch` (or of `parents`) and return the full commit name."""
        if parents is None:
            parents = [self._tips[branch]] if branch in self._tips else []
        seconds = next(self._dates) if date is None else date
        stamp = f"{seconds} +0000"
        lines = [
            f"commit refs/heads/{branch}".encode(),
            b"mark :1",
            f"author {author} {stamp}".encode(),
            f"committer Grace Hopper <grace@example.org> {stamp}".encode(),
            _data(message),
            *(
                f"{'merge' if at else 'from'} {parent}".encode()
                for at, parent in enumerate(parents)
            ),
            *([] if parents else [b"deleteall"]),
            *(_file_change(path, content) for path, content in (files or {}).items()),
            b"",
            b"get-mark :1",
            b"done",
            b"",
        ]
        tip = self.git("fast-import", "--quiet", "--force", "--done", stdin=b"\n".join(lines))
        self._tips[branch] = tip
        return tip

    def branch(self, name: str, start: str) -> None:
        """Make a branch at a commit."""
        self.git("update-ref", f"refs/heads/{name}", start)
        self._tips[name] = start

    def merge(
        self,
        message: str,
        *others: str,
        branch: str = "main",
        files: Mapping[str | bytes, Content] | None = None,
    ) -> str:
        """Merge commits into `branch`; `files` says what the result adds to the first parent."""
        return self.commit(message, files, branch=branch, parents=[self._tips[branch], *others])


def _data(content: str | bytes) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return b"data %d\n%s" % (len(raw), raw)


def _file_change(path: str | bytes, content: Content) -> bytes:
    raw_path = os.fsencode(path)
    quoted = b'"%s"' % b"".join(b"\\%03o" % byte for byte in raw_path)
    if content is None:
        return b"D " + quoted
    mode, data = content if isinstance(content, tuple) else ("100644", content)
    if mode == SUBMODULE:
        return b"M %s %s %s" % (mode.encode(), os.fsencode(data), quoted)
    return b"M %s inline %s\n%s" % (mode.encode(), quoted, _data(data))


@pytest.fixture(autouse=True)
def no_secret_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test declares to be secret is a word in another."""
    monkeypatch.setattr(concealment, "_known", set())
    monkeypatch.setattr(concealment, "_pattern", [])


@pytest.fixture(scope="session", autouse=True)
def _clean_git_environment() -> Iterator[None]:
    """Hide the configuration and GIT_ variables of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        for name, value in _CLEAN_GIT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_server_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test finds, starts or stops the server of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLDRUN_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def new_repository(tmp_path: Path) -> Callable[..., RepositoryBuilder]:
    """Make repositories in the test's folder: `new_repository("name", bare=False)`."""

    def build(name: str = "repository", **options: object) -> RepositoryBuilder:
        return RepositoryBuilder(tmp_path / name, **options)  # type: ignore[arg-type]

    return build


@pytest.fixture(scope="session")
def build_repository() -> Callable[..., RepositoryBuilder]:
    """Make a repository at a path of one's own, for property tests that need many."""
    return RepositoryBuilder
