"""Servers that are found, started and gone again; real processes throughout."""

from __future__ import annotations

import dataclasses
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from click.testing import CliRunner

from coldrun.cli.server import command
from coldrun.flows import prefect_server as module
from coldrun.flows.prefect_server import (
    Running,
    Server,
    StateFolder,
    find_server,
    require_server,
    server_environment,
    start_server,
    state_folder,
    use_server,
)
from coldrun.tasks.lib.errors import ColdrunError, StorageError, UsageError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    """A state folder of the test's own."""
    monkeypatch.setenv("COLDRUN_STATE", str(tmp_path / "state"))
    folder = state_folder()
    folder.prepare()
    return folder


def _run_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if "PREFECT" not in name}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


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
def test_use_server_inside_sets_and_after_restores_the_environment(
    used_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A given server is used as it is, and no variable of coldrun's outlives the context."""
    monkeypatch.setenv("PREFECT_API_URL", used_server.api_url)
    monkeypatch.setenv("PREFECT_API_KEY", "key")
    monkeypatch.setenv("PREFECT_HOME", "/home/of/the/user")
    before = dict(os.environ)
    with use_server(Server(used_server.api_url, "given"), verbose=False):
        assert os.environ["PREFECT_API_URL"] == used_server.api_url
        assert os.environ["PREFECT_API_KEY"] == "key"
        assert os.environ["PREFECT_HOME"] != "/home/of/the/user"
    assert dict(os.environ) == before


@pytest.mark.prefect
def test_started_server_answers_only_who_has_its_password(prefect_server: dict[str, str]) -> None:
    """Any local process could run code through it otherwise; pages of other origins cannot ask."""
    url = prefect_server["PREFECT_API_URL"]
    name, _, password = prefect_server["PREFECT_API_AUTH_STRING"].partition(":")
    with httpx.Client(trust_env=False, headers={"Origin": "http://evil.example"}) as client:
        assert client.get(f"{url}/admin/settings").status_code == 401
        assert client.post(f"{url}/flow_runs/filter", json={}).status_code in (401, 403)
        allowed = client.get(f"{url}/admin/settings", auth=(name, password))
        assert allowed.status_code == 200
        assert "access-control-allow-origin" not in allowed.headers


@pytest.mark.prefect
@pytest.mark.soak  # a server of its own
@pytest.mark.usefixtures("no_given_server")
def test_server_start_twice_at_once_is_one_server_that_later_runs_find(
    own_state: StateFolder,
) -> None:
    """Parallel starts make one server, private to its user; stop ends all of it."""
    code = "from coldrun.cli.main import main; main()"
    try:
        starts = [_run_python(code, "server", "start", "--json") for _ in range(2)]
        outputs = [start.communicate(timeout=200)[0] for start in starts]
        assert [start.returncode for start in starts] == [0, 0]
        statuses = [json.loads(output.splitlines()[-1]) for output in outputs]
        assert statuses[0] == statuses[1]
        assert os.getsid(statuses[0]["pid"]) == statuses[0]["pid"]

        lines: list[str] = []
        found = find_server(lines.append)
        assert found is not None
        assert (found.kind, found.api_url) == ("running", statuses[0]["api_url"])
        assert lines == [f"Prefect server: {found.ui_url}"]
        for path in (own_state.root, own_state.state, own_state.database, own_state.log):
            assert path.stat().st_mode & 0o077 == 0, path
    finally:
        stop = _run_python(code, "server", "stop")
        said = stop.communicate(timeout=60)[0]
    assert said == f"Stopped the Prefect server (process {statuses[0]['pid']}).\n"
    assert not psutil.pid_exists(statuses[0]["pid"])
    assert find_server(lambda _: None) is None


@pytest.mark.parametrize("pid", [os.getpid(), 2**22 - 3], ids=["reused", "dead"])
def test_stale_state_file_is_removed(own_state: StateFolder, pid: int) -> None:
    """A file that names a process which is gone, or which is another one, counts as none."""
    stale = Running(pid, 1, time.time(), "3.9.1", "a:b")
    own_state.state.write_text(json.dumps(dataclasses.asdict(stale)))
    assert own_state.read() is None
    assert not own_state.state.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_unreadable_state_file_is_removed(own_state: StateFolder, content: str) -> None:
    """A damaged file is no reason to fail."""
    own_state.state.write_text(content)
    assert own_state.read() is None
    assert not own_state.state.exists()


@pytest.mark.usefixtures("no_given_server", "own_state")
def test_without_a_server_none_is_found() -> None:
    """Commands do without; what cannot says how to start one."""
    assert find_server(pytest.fail) is None
    with pytest.raises(UsageError, match="coldrun server start"):
        require_server(pytest.fail)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:9/api", "Connection refused"),
        ("127.0.0.1:4200/api", "does not begin with http"),
        ("file:///etc/passwd", "does not begin with http"),
    ],
)
def test_given_address_that_cannot_be_used_is_one_line_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, url: str, reason: str
) -> None:
    """The address is named, with the way out, and nothing is started."""
    monkeypatch.setenv("PREFECT_API_URL", url)
    with pytest.raises(ColdrunError) as caught:
        find_server(pytest.fail)
    message = str(caught.value)
    assert f"PREFECT_API_URL={url}" in message
    assert reason in message
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
def test_given_address_of_something_else_says_what_it_is(
    monkeypatch: pytest.MonkeyPatch, code: int, body: bytes, reason: str
) -> None:
    """What answers but is no usable Prefect is told apart."""
    with _web_server(code, body) as url:
        monkeypatch.setenv("PREFECT_API_URL", url)
        with pytest.raises(ColdrunError) as caught:
            find_server(pytest.fail)
    assert reason in str(caught.value)


@pytest.mark.usefixtures("no_given_server")
def test_server_that_ends_while_starting_names_its_log(
    own_state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error holds the exit code and the end of the log, and no state stays."""
    monkeypatch.setattr(module, "START", ("prefect", "no-such-command"))
    with pytest.raises(ColdrunError, match=r"exit code \d+\).*its log is .*server.log and ends"):
        start_server(lambda _: None)
    assert own_state.read() is None


def test_port_in_use_is_not_taken() -> None:
    """A port in use is no reason to fail while another one may be used."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "PORTS", (taken.getsockname()[1], 0))
            assert module._free_port() != taken.getsockname()[1]


def test_prepare_state_read_only_says_which_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state folder that cannot be made is named with the way out."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COLDRUN_STATE", str(tmp_path / "file" / "x"))
    with pytest.raises(StorageError, match=r"state folder .*/file/x .*COLDRUN_STATE"):
        state_folder().prepare()


def test_environment_of_a_server_drops_what_is_meant_for_another(tmp_path: Path) -> None:
    """A database address of the user's own server never reaches one of coldrun's."""
    inherited = {"PATH": "/bin", "PREFECT_SERVER_DATABASE_CONNECTION_URL": "postgresql://user"}
    variables = server_environment(inherited, tmp_path, port=1, auth="a:b")
    assert variables["PATH"] == "/bin"
    assert "PREFECT_SERVER_DATABASE_CONNECTION_URL" not in variables


def test_flows_server_import_leaves_prefect_out() -> None:
    """Setting the environment first is possible, and `coldrun server` costs no Prefect."""
    modules = "sys, coldrun.cli.server, coldrun.flows.prefect_server"
    with _run_python(f"import {modules}; print('prefect' in sys.modules)") as python:
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
