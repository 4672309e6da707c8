"""A place to try real sessions in: a corpus, a product, a configuration folder and scratch."""

from __future__ import annotations

import os
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Corpus, CorpusTree, Session, SessionContext
from coldrun.tasks.arms.command.command_kind import CommandArm
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.config import ProcessArm, ProductConfig
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.records import Point, Question
from coldrun.tasks.product.points import prepare_point

ANSWERING = """
import json, os, sys, time

def say(**message):
    print(json.dumps(message), flush=True)

def answer(question):
    return {"items": [{"path": "src/a.py"}]}

def ready():
    return {}

def serve():
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "hello":
            globals()["hello"] = message
            say(type="ready", nonce=message["nonce"], **ready())
        elif message["type"] == "question":
            found = answer(message)
            if found is not None:
                say(type="answer", id=message["id"], **found)
        else:
            break
"""
"""The whole of an adapter, but for `serve()` and what a test gives it to do."""


@dataclass(frozen=True, slots=True)
class Lab:
    """Folders of one test. `corpus` has three files; later commits hold the word SECRET."""

    root: Path

    @property
    def config_dir(self) -> Path:
        return self.root / "config"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    def git(self, repo: str, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.root / repo, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, repo: str, message: str = "a change", **files: str | None) -> str:
        """Commit files, their names written with __ for / and _ for a dot; None removes one."""
        return self.commit_files(
            repo,
            {name.replace("__", "/").replace("_", "."): text for name, text in files.items()},
            message,
        )

    def commit_files(self, repo: str, files: dict[str, str | None], message: str = "more") -> str:
        path = self.root / repo
        if not path.exists():
            path.mkdir(parents=True)
            self.git(repo, "init", "--quiet", "--initial-branch=main")
            self.git(repo, "config", "user.name", "Ada")
            self.git(repo, "config", "user.email", "ada@example.org")
        for name, text in files.items():
            target = path / name
            if text is None:
                target.unlink()
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
        self.git(repo, "add", "--all")
        self.git(repo, "commit", "--quiet", "--allow-empty", "-m", message)
        return self.git(repo, "rev-parse", "HEAD")

    def corpus(self) -> Corpus:
        """The corpus at its base; the repository has a later commit."""
        if not (self.root / "corpus").exists():
            self.commit_files("corpus", {"src/a.py": "a = 1\n", "src/b.py": "b = 2\n", "x.md": "x"})
            self.git("corpus", "tag", "base")
            self.commit_files("corpus", {"src/a.py": "a = 'SECRET'\n"}, "SECRET answer")
        repository = Repository.open(self.root / "corpus")
        base = repository.resolve("base")
        tree = CorpusTree(git_dir=repository.git_dir, commit=base.commit, tree=base.tree)
        return Corpus(trees={".": tree})

    def write(self, name: str, text: str) -> str:
        """A file beside the configuration."""
        path = self.config_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return name

    def adapter(self, body: str, *, name: str = "adapter.py", serve: bool = True) -> str:
        """An adapter that answers src/a.py, changed by `body`."""
        text = f"{ANSWERING}\n{textwrap.dedent(body)}\n{'serve()' if serve else ''}\n"
        return self.write(name, text)

    def arm(self, **values: Any) -> CommandArm:
        """A session arm that runs the adapter."""
        defaults: dict[str, Any] = {
            "name": "tool",
            "kind": "command",
            "argv": ("{python}", "{adapter}"),
            "adapter": "adapter.py",
            "timeout_seconds": 10,
            "startup_timeout_seconds": 20,
        }
        return CommandArm(**{**defaults, **values})

    def context(
        self,
        arm: ProcessArm,
        *,
        point: Point | None = None,
        corpus: Corpus | None = None,
        answer: Any = "ranking",
        trial: int = 0,
        run_id: str = "run",
    ) -> SessionContext:
        self.config_dir.mkdir(exist_ok=True)
        return SessionContext(
            arm=arm,
            corpus=self.corpus() if corpus is None else corpus,
            answer=answer,
            k=5,
            seed=7,
            trial=trial,
            point=point,
            config_dir=self.config_dir,
            scratch=self.scratch,
            run_id=run_id,
        )

    @contextmanager
    def session(
        self, body: str = "", *, point: Point | None = None, **values: Any
    ) -> Iterator[Session]:
        """An open session whose adapter does what `body` says."""
        self.adapter(body)
        session = open_session(self.context(self.arm(**values), point=point))
        try:
            yield session
        finally:
            session.close()

    def product(self, *, repo: str = "../product", **values: Any) -> ProductConfig:
        return ProductConfig(repo=repo, **values)

    def point(self, revision: str | None = None, **values: Any) -> Point:
        self.config_dir.mkdir(exist_ok=True)
        return prepare_point(
            self.product(**values),
            config_dir=self.config_dir,
            scratch=self.scratch,
            revision=revision,
        )


def ask(session: Session, query: str = "where is a?", *, name: str = "q1") -> Any:
    """The reply to one question."""
    return session.ask(Question(id=name, query=query, answer="ranking", k=5, seed=7))


def items(session: Any, reply: Any) -> tuple[str, ...]:
    """The items of a reply, read as scoring reads them."""
    parsed = parse_answer(
        reply.raw, session.context.arm, answer="ranking", corpus_dir=session.start.corpus_dir
    )
    assert parsed.problem is None
    return parsed.items


@contextmanager
def serve_repositories(root: Path) -> Iterator[str]:
    """The address of a git server for the repositories below a folder."""
    port = 20000 + os.getpid() % 20000
    for repository in root.glob("*/.git"):
        (repository / "git-daemon-export-ok").touch()
    daemon = subprocess.Popen(
        [
            *("git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--reuseaddr"),
            *("--base-path=" + str(root), str(root)),
        ],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        url = f"git://127.0.0.1:{port}"
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            asked = ["git", "ls-remote", f"{url}/product/.git"]
            if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        yield url
    finally:
        os.killpg(daemon.pid, 9)
        daemon.wait()


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def is_gone(*pids: int, within_seconds: float = 5) -> bool:
    """Whether processes are gone, or go within a moment: the kernel takes its time."""
    deadline = time.monotonic() + within_seconds
    while any(is_running(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """Folders to try sessions in."""
    return Lab(tmp_path)
