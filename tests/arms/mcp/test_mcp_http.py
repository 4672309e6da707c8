"""MCP servers over streamable HTTP: the official SDK on both sides, real sockets between them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Session
from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from tests.services import Service, run_service
from tests.sessions import Lab, ask, items

SERVER = '''
import re, socket
from typing import Any
import uvicorn
from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("finder", log_level="ERROR")
FILES = {"a = 1": "src/a.py", "b = 2": "src/b.py"}

@server.tool()
def find(pattern: str, context: Context, limit: int = 5) -> dict[str, Any]:
    """Files whose text matches."""
    if pattern == "raise":
        raise ValueError("no such index")
    if pattern == "flood":
        return {"results": ["x" * 3_000_000]}
    if pattern == "headers":
        return {"results": [], "note": dict(context.request_context.request.headers)}
    found = sorted(name for text, name in FILES.items() if re.search(pattern, text))
    return {"results": [{"file": name} for name in found[:limit]]}

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
config = uvicorn.Config(server.streamable_http_app(), log_level="error")
uvicorn.Server(config).run(sockets=[listening])
'''

GARBAGE = r"""
import http.server, json, os, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.give("", 405)

    do_DELETE = do_GET

    def give(self, text, status=200, kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message["method"]
        if self.path == "/gone":
            self.give("who are you?", 404)
        elif self.path == "/limited":
            self.give("", 429, Retry_After="7")
        elif self.path == "/moved":
            self.give("", 307, Location="http://localhost:1/mcp?token=s3cret")
        elif self.path == "/slow":
            time.sleep(60)
        elif method == "initialize":
            self.result(message, protocolVersion="2025-03-26", capabilities={},
                        serverInfo={"name": "odd", "version": "1"})
        elif method == "tools/list":
            self.result(message, tools=[{"name": "find", "inputSchema": {"type": "object"}}])
        elif method == "tools/call":
            getattr(self, "on_" + message["params"]["arguments"]["pattern"])(message)
        else:
            self.give("", 202)

    def result(self, message, **result):
        self.give(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))

    def on_find(self, message):
        found = {"results": [{"file": "src/a.py"}], "pid": os.getpid()}
        self.result(message, content=[], structuredContent=found)

    def on_hang(self, message):
        time.sleep(60)

    def on_die(self, message):
        os._exit(5)

    def on_html(self, message):
        self.give("<html>gateway</html>", kind="text/html")

    def on_half(self, message):
        self.give('{"jsonrpc": "2.0", "id": 3, "res')

    def on_limited(self, message):
        self.give("", 429, Retry_After="7")

    def on_event(self, message):
        self.give("event: message\ndata: {broken\n\n", kind="text/event-stream")

    def on_cut(self, message):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"id: 1\nevent: message\ndata: \n\n")
        self.close_connection = True

port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that somebody else runs."""
    with run_service(tmp_path_factory.mktemp("remote"), SERVER) as found:
        yield found


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that speaks the protocol until it is asked something."""
    with run_service(tmp_path_factory.mktemp("odd"), GARBAGE) as found:
        yield found


def open_server(lab: Lab, url: str, **values: Any) -> Session:
    defaults: dict[str, Any] = {
        "name": "finder",
        "kind": "mcp",
        "url": url,
        "tool": "find",
        "arguments": {"pattern": "{query}", "limit": "{k}"},
        "items": "$.results[*].file",
        "timeout_seconds": 20,
        "startup_timeout_seconds": 20,
    }
    return open_session(lab.context(McpArm(**{**defaults, **values})))


@pytest.mark.parametrize("path", ["mcp", "mcp/"])
def test_remote_server_is_asked(lab: Lab, remote: Service, path: str) -> None:
    """A session shakes hands, calls the tool for each question, and leaves the server alone.

    Frameworks move an address by its last slash; a redirect on the same server is followed.
    """
    session = open_server(lab, f"{remote.url}/{path}")
    assert session.start.name is not None
    assert session.start.name.startswith("finder")
    reply = ask(session, "= [12]")
    assert reply.status == "answered", reply.reason
    assert items(session, reply) == ("src/a.py", "src/b.py")
    assert ask(session, "no such text").status == "abstained"
    assert "no such index" in ask(session, "raise").reason
    began = time.monotonic()
    end = session.close()
    assert time.monotonic() - began < 2
    assert (end.invalid, end.warnings, end.restarts) == ((), (), 0)
    assert remote.process.poll() is None


def test_headers_are_sent_and_their_secrets_never_come_back(
    lab: Lab, remote: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that repeats its headers does not put a secret into a record."""
    monkeypatch.setenv("MYTOOL_TOKEN", "tok-12345678")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    session = open_server(
        lab,
        f"{remote.url}/mcp",
        env=("MYTOOL_TOKEN",),
        headers={"Authorization": "Bearer ${MYTOOL_TOKEN}"},
    )
    reply = ask(session, "headers")
    sent = json.loads(reply.raw)["structuredContent"]["note"]
    assert sent["authorization"] == "Bearer …"
    assert "tok-12345678" not in repr(reply)


def test_timeout_and_flood_are_infra(lab: Lab, remote: Service) -> None:
    """The connection is given up and a new one made for the next question."""
    session = open_server(lab, f"{remote.url}/mcp", max_output_bytes=500_000, timeout_seconds=5)
    assert ask(session, "flood").reason == "sent more than 500000 bytes for one answer"
    assert ask(session, "a = 1").status == "answered"
    assert session.close().restarts == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("html", "malformed output: 'Unexpected content type: text/html'"),
        ("half", "malformed output: "),
        ("event", "malformed output: "),
        ("limited", "the endpoint answered with status 429 Too Many Requests, to be tried again"),
        ("cut", "the answer broke off: peer closed connection"),
    ],
)
def test_what_is_no_answer_is_infra_at_once(
    lab: Lab, odd: Service, capfd: pytest.CaptureFixture[str], query: str, reason: str
) -> None:
    """The SDK would log, wait or reconnect; the answer's record says what came."""
    session = open_server(lab, f"{odd.url}/mcp")
    began = time.monotonic()
    reply = ask(session, query)
    assert time.monotonic() - began < 5
    assert reply.status == "infra"
    assert reply.reason.startswith(reason)
    session.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("{odd}/gone", "status 404 Not Found"),
        ("{odd}/limited", "status 429 Too Many Requests, to be tried again after '7'"),
        ("{odd}/moved", "status 307 Temporary Redirect, to http://localhost:1/mcp; if that is"),
        ("{odd}/slow", "the session did not start: it was not ready after 0.8 s"),
        ("http://127.0.0.1:9/mcp", "cannot connect"),
    ],
)
def test_server_that_refuses_gives_infra(
    lab: Lab, odd: Service, capfd: pytest.CaptureFixture[str], url: str, reason: str
) -> None:
    """The session opens all the same; its answers say why there is none."""
    began = time.monotonic()
    session = open_server(lab, url.format(odd=odd.url), startup_timeout_seconds=0.8)
    reply = ask(session)
    assert reply.status == "infra"
    assert reason in reply.reason
    assert session.close().invalid == ()
    assert time.monotonic() - began < 8
    assert capfd.readouterr().err == ""


def test_server_killed_in_mid_answer_is_infra(lab: Lab, tmp_path: Path) -> None:
    """The question in flight fails at once, not at its time-out; afterwards nothing listens."""
    with run_service(tmp_path / "mortal", GARBAGE) as mortal:
        session = open_server(lab, f"{mortal.url}/mcp", timeout_seconds=30)
        assert ask(session, "find").status == "answered"
        timer = threading.Timer(0.3, mortal.process.kill)
        timer.start()
        began = time.monotonic()
        assert ask(session, "hang").reason.startswith("the answer broke off")
        assert time.monotonic() - began < 5
        assert "cannot connect" in ask(session, "find").reason
        session.close()
        timer.join()


def test_server_of_its_own_listens_on_a_free_port(lab: Lab) -> None:
    """With `argv` and {port} the server is coldrun's: started, started again, and ended."""
    lab.write("server.py", GARBAGE)
    argv = ("{python}", "server.py", "{port}")
    session = open_server(lab, "http://127.0.0.1:{port}/mcp", argv=argv)
    assert items(session, ask(session, "find")) == ("src/a.py",)
    assert ask(session, "die").reason == "the process ended with exit code 5"
    again = ask(session, "find")
    assert items(session, again) == ("src/a.py",)
    end = session.close()
    assert (end.invalid, end.restarts) == ((), 1)


def test_server_of_its_own_that_does_not_come_up_gives_infra(lab: Lab) -> None:
    """The reason is the server's end."""
    argv = ("{python}", "-c", "import sys; sys.exit(6)", "{port}")
    reply = ask(open_server(lab, "http://127.0.0.1:{port}/mcp", argv=argv))
    assert "the process ended with exit code 6" in reply.reason
