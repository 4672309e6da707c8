"""What a session can see, and what it must not carry over to another."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.workspace.isolation import prune_sessions
from coldrun.tasks.lib.machine.child_process import end_strays
from coldrun.tasks.lib.machine.file_locks import try_lock
from tests.sessions import Lab, ask, is_gone

CACHING = """
import hashlib, pathlib, tempfile
def answer(q):
    name = hashlib.sha256(hello["corpus"].encode()).hexdigest()
    cache = pathlib.Path(tempfile.gettempdir()) / "cache"
    cache.mkdir(exist_ok=True)
    found = sorted(path.read_text() for path in cache.iterdir())
    (cache / name).write_text("seen")
    (pathlib.Path.home() / "seen").write_text("x")
    return {"items": [], "stop_reason": json.dumps([found, os.environ["TMPDIR"]])}
"""
"""A product that keeps answers under the temporary directory, by the path of its corpus."""


def test_cache_under_the_temporary_folder_does_not_cross_sessions(lab: Lab) -> None:
    """One trial's cache is not there for the next, nor for a session at the same time."""
    lab.adapter(CACHING)
    folders = set()
    first = open_session(lab.context(lab.arm(), trial=0))
    second = open_session(lab.context(lab.arm(), trial=1))
    for session in (first, second):
        found, folder = json.loads(ask(session).stop_reason)
        assert found == []
        folders.add(folder)
    first.close()
    third = open_session(lab.context(lab.arm(), trial=2))
    found, folder = json.loads(ask(third).stop_reason)
    assert found == []
    assert len({*folders, folder}) == 3
    for session in (second, third):
        session.close()


REACHING = """
import subprocess
def reach(folder):
    done = subprocess.run(
        ["git", "-C", folder, "log", "--all", "-p"], capture_output=True, text=True
    )
    return done.stdout
def answer(q):
    places = {hello["corpus"], "."}
    for start in (hello["corpus"], os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"]):
        while start != "/":
            places.add(start)
            start = os.path.dirname(start)
    seen = {place: reach(place) for place in places}
    values = " ".join(os.environ.values())
    return {"items": [], "stop_reason": json.dumps([seen, values])}
"""


def test_no_later_commit_is_reachable(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither git nor `..` nor the environment leads to a later commit of corpus or product."""
    lab.commit_files("product", {"tool.py": "old"}, "first")
    old = lab.git("product", "rev-parse", "HEAD")
    lab.commit_files("product", {"tool.py": "LATER"}, "LATER product")
    monkeypatch.setenv("GIT_DIR", str(lab.root / "corpus" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(lab.root / "corpus"))
    monkeypatch.setenv("OLDPWD", str(lab.root / "corpus"))
    point = lab.point(old)
    lab.adapter(REACHING)
    session = open_session(lab.context(lab.arm(), point=point))
    seen, values = json.loads(ask(session).stop_reason)
    assert "first" in seen["."]
    for text in seen.values():
        assert "SECRET" not in text
        assert "LATER" not in text
    assert str(lab.root / "corpus") not in values
    session.close()


def test_without_a_product_git_sees_nothing(lab: Lab) -> None:
    """A configuration inside the searched repository does not open its history to the tool."""
    corpus = lab.corpus()
    inside = Lab(lab.root / "corpus" / "evals")
    inside.root.mkdir()
    inside.adapter(REACHING)
    context = lab.context(lab.arm(), corpus=corpus)
    session = open_session(replace(context, config_dir=inside.config_dir))
    seen, _ = json.loads(ask(session).stop_reason)
    assert set(seen.values()) == {""}
    session.close()


def test_changed_and_removed_corpus_files_make_the_session_invalid(lab: Lab) -> None:
    """A tool that edits what it searches has changed the question; the files are named."""
    body = """
    def answer(q):
        corpus = hello["corpus"]
        open(corpus + "/src/a.py", "a").write("#")
        os.unlink(corpus + "/x.md")
        os.mkdir(corpus + "/.index")
        open(corpus + "/.index/db", "w").write("1")
        return {"items": ["src/a.py"]}
    """
    with lab.session(body) as session:
        ask(session)
        end = session.close()
    assert len(end.invalid) == 2
    assert "src/a.py" in end.invalid[0]
    assert "x.md" in end.invalid[1]
    assert ".index/db" in end.warnings[0]
    with lab.session(body, writes=(".index/**",)) as session:
        ask(session)
        assert session.close().warnings == ()


def test_product_that_changes_itself_is_invalid(lab: Lab) -> None:
    """A session that edits the product's tracked files no longer measures the point."""
    lab.commit_files("product", {"tool.py": "x"})
    body = """
    def answer(q):
        open("tool.py", "a").write("#")
        return {"items": []}
    """
    with lab.session(body, point=lab.point(), sandbox=False) as session:
        ask(session)
        end = session.close()
    assert end.invalid == ("a session changed tracked files of the product: tool.py",)


def test_cache_in_the_products_folder_does_not_cross_sessions(lab: Lab) -> None:
    """What a session left in the checkout is named, and gone before the next session starts."""
    lab.commit_files("product", {"tool.py": "x", ".gitignore": ".cache/\n"})
    body = """
    def answer(q):
        os.makedirs(".cache", exist_ok=True)
        found = os.listdir(".cache")
        open(".cache/answers", "w").write("1")
        return {"items": [], "stop_reason": json.dumps(found)}
    """
    point = lab.point()
    for _ in range(2):
        with lab.session(body, point=point, sandbox=False) as session:
            assert ask(session).stop_reason == "[]"
            assert ask(session).stop_reason == '["answers"]'
            end = session.close()
        assert end.invalid == ()
        assert end.warnings == ("wrote .cache/answers into the product's checkout",)


def test_dead_runs_sessions_are_pruned_and_living_ones_kept(lab: Lab) -> None:
    """Folders of a killed run go, with what still runs in them; a running session stays."""
    body = """
    import subprocess
    def answer(q):
        child = subprocess.Popen(["sleep", "60"], start_new_session=True, stdout=2)
        return {"items": [], "stop_reason": str(child.pid)}
    """
    with lab.session(body) as alive:
        assert prune_sessions(lab.scratch) == ()
        assert ask(alive).status == "abstained"
    dead = open_session(lab.context(lab.arm(sandbox=False), run_id="dead"))
    pid = int(ask(dead).stop_reason)
    # What a killed run leaves: its lock is gone, its folders and strays are not.
    dead.workspace.root.with_suffix(".lock").unlink()  # type: ignore[attr-defined]
    try:
        (removed,) = prune_sessions(lab.scratch)
        assert removed.startswith("sessions/dead/")
        assert is_gone(pid)
        assert not (lab.scratch / removed).exists()
    finally:
        dead.abort()
        dead.close()


def test_stray_with_the_number_of_an_earlier_process_is_ended(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of processes that is older than the stray does not protect it."""
    home = lab.root / "home"
    for _ in psutil.process_iter():
        pass  # psutil now remembers the processes of this moment.
    child = subprocess.Popen(["sleep", "60"], env={**os.environ, "HOME": str(home)})
    try:
        stale = psutil.Process(os.getpid())
        remembered = dict(psutil._pmap)
        monkeypatch.setattr(psutil, "_pmap", {**remembered, child.pid: stale})
        assert end_strays(home) == 1
        assert child.wait(timeout=5) == -9
    finally:
        child.kill()
        child.wait()


def test_lock_is_free_again_when_its_owner_lets_go(tmp_path: Path) -> None:
    """A lock keeps others out until it is released, and may be released twice."""
    path = tmp_path / "folder" / "a.lock"
    held = try_lock(path)
    assert held is not None
    assert try_lock(path) is None
    held.release()
    held.release()
    again = try_lock(path)
    assert again is not None
    again.release()
