"""An arm that looks for a way out of its session: every way ends at the sandbox's wall."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Session
from coldrun.tasks.lib.machine.sandbox import sandbox_problem
from tests.sessions import Lab, ask, is_running

pytestmark = pytest.mark.skipif(sandbox_problem() is not None, reason=str(sandbox_problem()))

SECRET = "gold-of-the-panel"

TRYING = """
import ctypes, glob, shutil, socket, subprocess, urllib.request
from pathlib import Path

def answer(question):
    try:
        found = eval(question["query"], globals())
    except BaseException as error:
        found = type(error).__name__
    return {"items": [], "stop_reason": repr(found)}

def listen_on(place):
    other = socket.socket(socket.AF_UNIX)
    other.settimeout(2)
    other.connect(place)
    return other.recv(99)

def connect_to(host, port):
    return socket.create_connection((host, port), 2).recv(99)

def find_everywhere(name):
    return [str(path) for path in Path("/").rglob(name) if "/proc/" not in str(path)]

def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=20)
    return done.stdout + done.stderr

def environments():
    return "".join(Path(f"/proc/{pid}/environ").read_text(errors="replace")
                   for pid in os.listdir("/proc") if pid.isdigit())
"""


@pytest.fixture
def place(lab: Lab) -> Lab:
    """The gold and other things that a session must not reach, each with the secret in it."""
    lab.commit_files("product", {"tool.py": "x\n", "eval/e.toml": "[panel]\n"})
    frozen = {f"eval/e{end}": SECRET for end in (".panel.jsonl", ".lock", ".sealed")}
    lab.commit_files("product", dict(frozen))
    for name in ("config/toy.panel.jsonl", "config/toy.lock", "data/captures/run/a.json"):
        path = lab.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    home = lab.scratch / "sessions" / "run" / "other" / "home"
    home.mkdir(parents=True)
    (home / "notes.txt").write_text(SECRET)
    return lab


@contextmanager
def hostile(lab: Lab) -> Iterator[Session]:
    lab.adapter(TRYING)
    session = open_session(lab.context(lab.arm(timeout_seconds=60), point=lab.point()))
    try:
        yield session
    finally:
        session.close()


def said(session: Session, attempt: str) -> str:
    """What an attempt brought; the session answers before and after it."""
    reply: Any = ask(session, attempt)
    assert reply.status != "infra", reply.reason
    return str(reply.stop_reason)


ATTEMPTS = {
    "panel by its path": "Path('{root}/config/toy.panel.jsonl').read_text()",
    "lock by its path": "Path('{root}/config/toy.lock').read_text()",
    "captures": "Path('{root}/data/captures/run/a.json').read_text()",
    "folder of the configuration": "os.listdir('{root}/config')",
    "another session": "Path('{root}/scratch/sessions/run/other/home/notes.txt').read_text()",
    "panel in the checkout": "Path('eval/e.panel.jsonl').read_text()",
    "lock in the checkout": "Path('eval/e.lock').read_text()",
    "sealed part in the checkout": "Path('eval/e.sealed').read_text()",
    "panel in the product's history": "run('git show HEAD:eval/e.panel.jsonl; git log -p')",
    "history of the corpus": "run('git -C {root}/corpus log -p; cd ' + hello['corpus'] + "
    "'; git log -p')",
    "panel anywhere": "[Path(p).read_text() for p in find_everywhere('*.panel.jsonl')]",
    "the user's home": "[os.listdir(p) for p in ('/root', '/home') if os.path.exists(p)]",
    "environment of the parent": "environments()",
    "files of the parent": "[os.listdir(f'/proc/{{p}}/cwd') + os.listdir(f'/proc/{{p}}/root') "
    "for p in os.listdir('/proc') if p.isdigit()]",
    "a port of this machine": "connect_to('127.0.0.1', {port})",
    "a port by the machine's name": "connect_to(socket.gethostname(), {port})",
    "the network by number": "connect_to('1.1.1.1', 53)",
    "the network by name": "connect_to('example.com', 80)",
    "a socket in a folder": "listen_on('{root}/door')",
    "an abstract socket": "listen_on('\\0coldrun-{port}')",
    "a link out": "[os.symlink('{root}/config', 'out'), os.listdir('out')]",
    "a hard link out": "os.link('{root}/config/toy.lock', 'out2')",
    "a mount": "run('mount --bind / /mnt; mount -o remount,rw /; ls {root}/config')",
    "a namespace within": "run('unshare -Urm sh -c \"mount -t tmpfs x /tmp; ls {root}/config\"')",
    "the namespace of init": "run('nsenter -t 1 -m -- ls {root}/config')",
    "ptrace": "ctypes.CDLL(None, use_errno=True).ptrace(16, {pid}, 0, 0)",
    "a device": "[os.mknod('disk', 0o60600, os.makedev(8, 0)), open('disk', 'rb').read(9)]",
    "the root of the disk": "os.listdir(Path('/proc/1/root/{root}/config'))",
}
"""Ways to the secret, or out; what any of them brings must not show either."""

OUTSIDE = ("toy.panel.jsonl", SECRET, "knock", "MY_SECRET", "pyproject")


def test_no_attempt_gets_out_of_a_sealed_session(
    place: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A sealed session works, then tries, then works again."""
    monkeypatch.setenv("MY_SECRET", "s3cret")
    with doors(tmp_path) as port, hostile(place) as session:
        assert said(session, "Path('tool.py').read_text()") == repr("x\n")
        assert said(session, "os.listdir(hello['corpus'])") != "[]"
        values = {"root": place.root, "port": port, "pid": os.getpid()}
        for name, attempt in ATTEMPTS.items():
            found = said(session, attempt.format(**values))
            assert not any(word in found for word in OUTSIDE), (name, found)
        assert said(session, "Path('tool.py').read_text()") == repr("x\n")


@contextmanager
def doors(root: Path) -> Iterator[int]:
    """A port, a socket in a folder, and an abstract socket, each of which says `knock`."""
    sockets = []
    for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, None)):
        door = socket.socket(family)
        if address is None:
            with_short_name(door, root)
        else:
            door.bind(address)
        sockets.append(door)
    port: int = sockets[0].getsockname()[1]
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0coldrun-{port}")
    sockets.append(abstract)
    for door in sockets:
        door.listen()
        threading.Thread(target=answer_door, args=(door,), daemon=True).start()
    try:
        yield port
    finally:
        for door in sockets:
            door.close()


def with_short_name(door: socket.socket, root: Path) -> None:
    folder = os.open(root, os.O_RDONLY)
    door.bind(f"/proc/self/fd/{folder}/door")
    os.close(folder)


def answer_door(door: socket.socket) -> None:
    while True:
        try:
            guest, _ = door.accept()
        except OSError:
            return
        guest.sendall(b"knock")
        guest.close()


def test_what_a_session_writes_is_gone_with_it(place: Lab) -> None:
    """Neither the checkout, bytecode included, nor anything outside keeps a trace."""
    written = "[Path(p).write_text('w') for p in ('tool.py', '/tmp/x', hello['corpus'] + '/new')]"
    caches = "[os.makedirs('__pycache__'), Path('__pycache__/a.json').write_text('w')]"
    refused = ("/usr/x", "/etc/passwd", "/x", "{files}/x")
    with hostile(place) as session:
        assert said(session, written) == "[1, 1, 1]"
        assert said(session, caches) == "[None, 1]"
        for path in refused[:3]:
            assert "Error" in said(session, f"Path({path!r}).write_text('w')")
        point = session.context.point  # type: ignore[attr-defined]
    assert sorted(path.name for path in point.directory.iterdir()) == [".git", "eval", "tool.py"]
    assert (point.directory / "tool.py").read_text() == "x\n"
    assert not Path("/tmp/x").exists()
    with hostile(place) as session:
        assert said(session, "Path('tool.py').read_text()") == repr("x\n")
        assert said(session, "os.path.exists('__pycache__')") == "False"


def test_no_daemon_survives_its_session(place: Lab) -> None:
    """A process that leaves its group and ignores signals ends with the sandbox."""
    daemon = (
        "subprocess.Popen(['sh', '-c', 'trap \"\" TERM HUP; sleep 61.75'], start_new_session=True, "
        "stdout=2).pid"
    )
    before = sleepers()
    with hostile(place) as session:
        assert int(said(session, daemon)) > 1
        deadline = time.monotonic() + 5
        while len(sleepers()) <= len(before):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert sleepers() == before


def sleepers() -> list[int]:
    """The processes outside that sleep as the daemon does."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"61.75" in path.read_bytes() and is_running(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(os.getuid() != 0, reason="another user can be taken on by root alone")
def test_no_attempt_gets_out_as_an_unprivileged_user(tmp_path_factory: Any) -> None:
    """The same as `nobody`, in a process of its own."""
    needed = [Path(sys.executable), Path(sys.base_prefix), Path(__file__)]
    if any(not folder.stat().st_mode & 0o001 for each in needed for folder in each.parents):
        pytest.skip("the interpreter, or this file, lies in a folder that only root may read")
    root = tmp_path_factory.mktemp("nobody")
    for folder in (root, *root.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).startswith("/tmp/"):
            folder.chmod(0o777)
    test = f"{Path(__file__).name}::test_no_attempt_gets_out_of_a_sealed_session"
    program = (
        "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); "
        f"os.environ['HOME'] = {str(root)!r}; import pytest; "
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--basetemp={root}/t', "
        f"{str(Path(__file__).parent / test)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.startswith("."), done.stdout
