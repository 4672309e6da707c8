"""Servers that are found, started and gone again; real processes throughout."""

from __future__ import annotations

import dataclasses
import http.server
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from coldrun.cli.server import command
from coldrun.flows import server_launch
from coldrun.flows.prefect_server import (
    ServerHandle,
    ServerStatus,
    prefect_environment,
    server_status,
    use_server,
)
from coldrun.flows.server_environment import server_environment
from coldrun.flows.server_state import (
    Running,
    StateFolder,
    prepare,
    prepare_state,
    run_folders,
    state_folder,
)
from coldrun.tasks.lib.errors import ColdrunError, StorageError

ROOT = Path(__file__).parents[2]
USE = """
import os, sys, time
from pathlib import Path
from coldrun.flows.prefect_server import use_server
with use_server(Path(sys.argv[1]), verbose=False, announce=print, is_awaited="await" in sys.argv):
    if "fork" in sys.argv and os.fork() == 0:
        time.sleep(8)  # holds all that its parent held
        os._exit(0)
    print("in", flush=True)
    time.sleep(120)
"""


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    """A state folder of the test's own."""
    monkeypatch.setenv("COLDRUN_STATE", str(tmp_path / "state"))
    return prepare_state()


def _run_python(code: str, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if "PREFECT" not in name}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _wait_for(is_so: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.05)
    return False


def _servers_of(pid: int) -> list[psutil.Process]:
    """The servers that a process has started."""
    children = psutil.Process(pid).children()
    return [child for child in children if any("server_process" in x for x in child.cmdline())]


@contextmanager
def _web_server(code: int, body: bytes) -> Iterator[str]:
    """Something that answers, and is no Prefect."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = threading.Thread(target=web.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{web.server_address[1]}/api"
        web.shutdown()
        thread.join()


@pytest.mark.prefect
@pytest.mark.parametrize(
    "when",
    [
        pytest.param("starting", marks=pytest.mark.soak),
        pytest.param("await", marks=pytest.mark.soak),
        pytest.param("fork", marks=pytest.mark.soak),
    ],
)
def test_own_server_parent_killed_is_gone_with_its_folder(
    prefect_server: ServerHandle, server_scratch: Path, when: str
) -> None:
    """Nothing is left of an own server after kill -9 of coldrun, not even while it started."""
    with _run_python(USE, server_scratch, when) as parent:
        assert parent.stdout is not None
        first, second = parent.stdout.readline(), parent.stdout.readline()
        assert "coldrun server start" in first
        assert second == "in\n"
        (child,) = _servers_of(parent.pid)
        assert os.getpgid(child.pid) == child.pid != os.getpgid(parent.pid)
        parent.kill()
    assert _wait_for(lambda: not child.is_running(), 5)
    left = [path.name for path in run_folders(server_scratch).own.glob(f"{parent.pid}-*")]
    prepare(server_scratch)
    assert all("prefect.db" not in name for name in left)
    assert not list(run_folders(server_scratch).own.glob(f"{parent.pid}-*"))


@pytest.mark.prefect
@pytest.mark.soak
@pytest.mark.usefixtures("no_given_server")
def test_own_server_leaves_a_migrated_database_without_runs(server_scratch: Path) -> None:
    """The next one starts from a copy of it, which saves the migrations."""
    with use_server(server_scratch, verbose=False, announce=lambda _: None) as server:
        assert server.kind == "own"
    template = state_folder().template
    with closing(sqlite3.connect(template)) as database:
        (runs,) = database.execute("SELECT count(*) FROM flow_run").fetchone()
        (revisions,) = database.execute("SELECT count(*) FROM alembic_version").fetchone()
    assert (runs, revisions) == (0, 1)


@pytest.mark.prefect
def test_use_server_inside_sets_and_after_restores_the_environment(
    prefect_server: ServerHandle, server_scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A given server is used as it is, and no variable of coldrun's outlives the context."""
    monkeypatch.setenv("PREFECT_API_URL", prefect_server.api_url)
    monkeypatch.setenv("PREFECT_API_KEY", "key")
    monkeypatch.setenv("PREFECT_HOME", "/home/of/the/user")
    before = dict(os.environ)
    lines: list[str] = []
    with use_server(server_scratch, verbose=False, announce=lines.append) as given:
        assert given.kind == "given"
        assert given.api_url == os.environ["PREFECT_API_URL"] == prefect_server.api_url
        assert os.environ["PREFECT_API_KEY"] == "key"
        assert os.environ["PREFECT_HOME"] == str(run_folders(server_scratch).root)
    assert dict(os.environ) == before
    assert lines == [f"Prefect server: {prefect_server.api_url}"]


@pytest.mark.prefect
@pytest.mark.soak  # two servers
@pytest.mark.usefixtures("no_given_server")
def test_server_start_twice_at_once_is_one_server_that_later_runs_find(
    prefect_server: ServerHandle, tmp_path: Path
) -> None:
    """Parallel starts make one server; a run uses it whatever its scratch; stop ends all of it."""
    code = "from coldrun.cli.main import main; main()"
    try:
        starts = [_run_python(code, "server", "start", "--json") for _ in range(2)]
        outputs = [start.communicate(timeout=200)[0] for start in starts]
        assert [start.returncode for start in starts] == [0, 0]
        statuses = [ServerStatus(**json.loads(output.splitlines()[-1])) for output in outputs]
        assert statuses[0] == statuses[1] == server_status()
        assert statuses[0].pid is not None
        assert os.getsid(statuses[0].pid) == statuses[0].pid

        lines: list[str] = []
        with use_server(tmp_path / "another", verbose=False, announce=lines.append) as found:
            assert found.kind == "running"
            assert found.api_url == statuses[0].api_url
        assert lines == [f"Prefect server: {statuses[0].ui_url}"]
    finally:
        stop = _run_python(code, "server", "stop")
        said = stop.communicate(timeout=60)[0]
    assert said == f"Stopped the Prefect server (process {statuses[0].pid}).\n"
    assert not psutil.pid_exists(statuses[0].pid)
    assert not server_status().is_running


@pytest.mark.parametrize("pid", [os.getpid(), 2**22 - 3], ids=["reused", "dead"])
def test_server_status_stale_state_file_is_removed(own_state: StateFolder, pid: int) -> None:
    """A file that names a process which is gone, or which is another one, counts as none."""
    folders = own_state
    stale = Running(pid=pid, port=1, created=time.time(), prefect_version="3.9.1")
    folders.state.write_text(json.dumps(dataclasses.asdict(stale)))
    assert not server_status().is_running
    assert not folders.state.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_server_status_unreadable_state_file_is_removed(
    own_state: StateFolder, content: str
) -> None:
    """A damaged file is no reason to fail."""
    folders = own_state
    folders.state.write_text(content)
    assert not server_status().is_running
    assert not folders.state.exists()


def test_use_server_given_url_dead_is_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address where nothing listens is named, with the way out, and nothing is started."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with (
        pytest.raises(ColdrunError) as caught,
        use_server(tmp_path, verbose=False, announce=pytest.fail),
    ):
        pass
    message = str(caught.value)
    assert "PREFECT_API_URL=http://127.0.0.1:9/api" in message
    assert "Connection refused" in message
    assert "unset PREFECT_API_URL" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("code", "body", "reason"),
    [
        (404, b"", "it answers HTTP 404"),
        (401, b"", "it refuses the credentials (HTTP 401)"),
        (200, b"<html>", "what answers there is not Prefect's API"),
    ],
)
def test_use_server_given_url_of_something_else_says_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, body: bytes, reason: str
) -> None:
    """What answers but is no usable Prefect is told apart."""
    with _web_server(code, body) as url:
        monkeypatch.setenv("PREFECT_API_URL", url)
        with (
            pytest.raises(ColdrunError) as caught,
            use_server(tmp_path, verbose=False, announce=pytest.fail),
        ):
            pass
    assert reason in str(caught.value)


@pytest.mark.parametrize("url", ["127.0.0.1:4200/api", "file:///etc/passwd"])
def test_use_server_given_url_without_http_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """An address of another kind is never opened."""
    monkeypatch.setenv("PREFECT_API_URL", url)
    with (
        pytest.raises(ColdrunError, match="does not begin with http"),
        use_server(tmp_path, verbose=False, announce=pytest.fail),
    ):
        pass


@pytest.mark.usefixtures("no_given_server")
def test_own_server_that_ends_while_starting_names_its_log(
    tmp_path: Path, own_state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error holds the exit code, the last line and the log, and the template is dropped."""
    program = tmp_path / "server_process.py"
    program.write_text("import sys; print('no such thing'); sys.exit(7)")
    monkeypatch.setattr(server_launch, "PROGRAM", program)
    folders = prepare(tmp_path)
    with closing(sqlite3.connect(own_state.template)) as database:
        database.execute("CREATE TABLE anything (a)")
    with (
        pytest.raises(ColdrunError) as caught,
        use_server(tmp_path, verbose=False, announce=lambda _: None),
    ):
        pass
    (log,) = folders.logs.iterdir()
    assert "exit code 7" in str(caught.value)
    assert f"its log is {log} and ends with: no such thing" in str(caught.value)
    assert not own_state.template.exists()
    assert not list(folders.own.iterdir())


@pytest.mark.usefixtures("no_given_server")
def test_own_server_left_before_it_is_ready_is_killed(tmp_path: Path) -> None:
    """An error before the first flow, and the server that was starting meanwhile is gone."""
    earlier = set(_servers_of(os.getpid()))
    found: list[psutil.Process] = []

    def fail_in_context() -> None:
        with use_server(tmp_path, verbose=False, announce=lambda _: None, is_awaited=False):
            found.extend(set(_servers_of(os.getpid())) - earlier)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_in_context()
    assert len(found) == 1
    assert not found[0].is_running()
    assert not list(run_folders(tmp_path).own.iterdir())


def test_launch_damaged_template_is_thrown_away(tmp_path: Path) -> None:
    """A template that is no whole database is not copied, and makes room for a new one."""
    template = tmp_path / "template.db"
    template.write_bytes(b"half a database")
    assert not server_launch._copy_template(template, tmp_path / "prefect.db")
    assert not template.exists()
    assert not (tmp_path / "prefect.db").exists()


def test_launch_port_taken_takes_the_next(tmp_path: Path) -> None:
    """A port in use is no reason to fail while another one may be used."""
    with closing(server_launch._bind((0,))) as taken:
        port = taken.getsockname()[1]
        with closing(server_launch._bind((port, 0))) as other:
            assert other.getsockname()[1] != port
        with pytest.raises(ColdrunError, match=str(port)):
            server_launch._bind((port,))


def test_prepare_scratch_read_only_says_which_option(tmp_path: Path) -> None:
    """A scratch folder that cannot be made is named with the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"scratch folder .*/file/x .*--scratch"):
        prepare(tmp_path / "file" / "x")


def test_prepare_state_read_only_says_which_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state folder that cannot be made is named with the way out, and is private where it can."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COLDRUN_STATE", str(tmp_path / "file" / "x"))
    with pytest.raises(StorageError, match=r"state folder .*/file/x .*COLDRUN_STATE"):
        prepare_state()
    monkeypatch.setenv("COLDRUN_STATE", str(tmp_path / "mine"))
    assert prepare_state().root.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("no_given_server")
def test_own_server_starts_without_a_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run needs nothing that stays: a HOME that cannot be written does not stop it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COLDRUN_STATE", str(tmp_path / "file" / "x"))
    with use_server(tmp_path, verbose=False, announce=lambda _: None, is_awaited=False) as server:
        assert server.kind == "own"
    assert not server_status().is_running


def test_prepare_folders_of_dead_processes_are_removed(tmp_path: Path) -> None:
    """What a killed run left behind goes with the next run; what lives stays."""
    own = prepare(tmp_path).own
    (own / f"{2**22 - 3}-dead").mkdir()
    (own / f"{os.getpid()}-alive").mkdir()
    prepare(tmp_path)
    assert [path.name for path in own.iterdir()] == [f"{os.getpid()}-alive"]


def test_environment_of_coldrun_leaves_the_way_to_a_server_to_the_user(tmp_path: Path) -> None:
    """Quiet and offline, with a home in the scratch folder, and no address or key touched."""
    variables = prefect_environment(tmp_path, verbose=False)
    assert not any(name.startswith("PREFECT_API_") for name in variables)
    assert variables["DO_NOT_TRACK"] == "1"
    assert variables["PREFECT_HOME"].startswith(str(tmp_path))
    assert variables["PREFECT_LOGGING_LEVEL"] == "CRITICAL"
    assert prefect_environment(tmp_path, verbose=True)["PREFECT_LOGGING_LEVEL"] == "INFO"


def test_environment_of_a_server_drops_what_is_meant_for_another(tmp_path: Path) -> None:
    """A database address of the user's own server never reaches one of coldrun's."""
    inherited = {"PATH": "/bin", "PREFECT_SERVER_DATABASE_CONNECTION_URL": "postgresql://user"}
    variables = server_environment(inherited, tmp_path, port=1, is_watched=False, is_migrated=True)
    assert variables["PATH"] == "/bin"
    assert "PREFECT_SERVER_DATABASE_CONNECTION_URL" not in variables


def test_flows_server_import_leaves_prefect_out() -> None:
    """Setting the environment first is possible, and `coldrun server` costs no Prefect."""
    modules = "sys, coldrun.cli.server, coldrun.flows.prefect_server"
    code = f"import {modules}; print('prefect' in sys.modules)"
    with _run_python(code) as python:
        assert python.communicate()[0] == "False\n"


def test_server_command_without_a_server_says_how_to_start_one(own_state: StateFolder) -> None:
    """`status` and `stop` are answers, not failures, where nothing runs."""
    runner = CliRunner()
    status = runner.invoke(command, ["status"])
    assert status.exit_code == 0
    assert status.stdout == "No server is running. `coldrun server start` starts one.\n"
    stop = runner.invoke(command, ["stop"])
    assert (stop.exit_code, stop.stdout) == (0, "No server was running.\n")
    machine = runner.invoke(command, ["status", "--json"])
    assert json.loads(machine.stdout)["is_running"] is False
    assert json.loads(machine.stdout)["database"].startswith(str(own_state.root))
