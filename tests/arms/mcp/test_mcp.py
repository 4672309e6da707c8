"""MCP servers over stdio: the official SDK asks real processes, one of which uses it as well."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Session
from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from tests.sessions import Lab, ask, is_gone, items

SDK_SERVER = '''
import json, os, pathlib, re, sys, time
from typing import Any
from mcp.server.fastmcp import FastMCP

server = FastMCP("finder", log_level="ERROR")
state = {"path": None}

@server.tool()
def set_path(path: str) -> str:
    state["path"] = pathlib.Path(path)
    time.sleep(0.1)
    return "ready"

@server.tool()
def find(pattern: str, limit: int = 5) -> dict[str, Any]:
    """Files whose text matches."""
    if pattern == "raise":
        raise ValueError("no such index")
    if pattern == "unready":
        return {"results": [], "message": "index not ready"}
    found = [
        {"file": str(path), "lines": 1}
        for path in sorted(state["path"].rglob("*"))
        if path.is_file() and re.search(pattern, path.read_text())
    ]
    return {"results": found[:limit], "home": os.environ["HOME"], "limit": limit}

server.run()
'''

BARE_SERVER = r"""
import json, os, subprocess, sys, time
polls = 0

def find(pattern):
    if pattern == "hang":
        child = subprocess.Popen(["sleep", "60"])
        print(child.pid, os.getpid(), file=sys.stderr, flush=True)
        time.sleep(60)
    if pattern == "die":
        print("boom", file=sys.stderr, flush=True)
        os._exit(5)
    if pattern == "flood":
        return "x" * 3_000_000
    if pattern == "stray":
        print("hello, human", flush=True)
    return "## Results\n- **src/b.py**: 1 match" if pattern == "b" else "No matches found."

def call(name, arguments):
    global polls
    if name == "find":
        return find(arguments["pattern"])
    polls += 1
    return "complete" if polls > 3 else "still indexing"

def answer(method, params):
    if method == "initialize":
        server = {"name": "bare", "version": "1"}
        return {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": server}
    if method == "tools/list":
        names = ("poll", "find", "refuse")
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    if params["name"] == "refuse":
        return {"content": [{"type": "text", "text": "no such path"}], "isError": True}
    return {"content": [{"type": "text", "text": call(params["name"], params["arguments"])}]}

if "--fail" in sys.argv:
    sys.exit(6)
if "--sleep" in sys.argv:
    time.sleep(60)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params"))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""Speaks the protocol by itself: it is up twenty times as fast as a server of the SDK's."""

POLL = {"tool": "poll", "every_seconds": 0.02}


def open_bare(lab: Lab, *arguments: str, **values: Any) -> Session:
    lab.write("server.py", BARE_SERVER)
    defaults: dict[str, Any] = {
        "name": "finder",
        "kind": "mcp",
        "argv": ("{python}", "server.py", *arguments),
        "tool": "find",
        "arguments": {"pattern": "{query}"},
        "items_regex": r"^- \*\*(.+?)\*\*",
        "timeout_seconds": 20,
        "startup_timeout_seconds": 30,
    }
    return open_session(lab.context(McpArm(**{**defaults, **values})))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One server of the SDK's for the tests that leave it alive."""
    lab = Lab(tmp_path_factory.mktemp("mcp"))
    lab.write("server.py", SDK_SERVER)
    arm = McpArm(
        name="finder",
        kind="mcp",
        argv=(sys.executable, "server.py"),
        prepare=({"tool": "set_path", "arguments": {"path": "{corpus}"}},),
        tool="find",
        arguments={"pattern": "{query}", "limit": "{k}"},
        items="$.results[*].file",
    )
    session = open_session(lab.context(arm))
    yield session
    session.close()


def test_server_is_prepared_and_asked(shared: Any) -> None:
    """Start-up and indexing are timed apart; items are read from the structured content."""
    assert shared.start.name.startswith("finder")
    assert shared.start.startup_seconds > 0
    assert shared.start.indexing_seconds >= 0.1
    reply = ask(shared, "= [12]")
    assert reply.status == "answered"
    assert items(shared, reply) == ("src/a.py", "src/b.py")
    result = json.loads(reply.raw)
    assert result["structuredContent"]["limit"] == 5
    assert result["structuredContent"]["home"].startswith(str(shared.workspace.root))
    (event,) = reply.events
    assert (event.name, event.position) == ("find", 0)
    assert event.returned_bytes == len(reply.raw)


def test_what_a_live_server_says_is_told_apart(shared: Any) -> None:
    """Nothing found abstains; an error, or one with a success status, is infra, and it lives on."""
    assert ask(shared, "no such text").status == "abstained"
    reply = ask(shared, "raise")
    assert (reply.status, json.loads(reply.raw)["isError"]) == ("infra", True)
    assert "no such index" in reply.reason
    reply = ask(shared, "unready")
    assert (reply.status, reply.reason) == ("infra", "index not ready")
    assert ask(shared, "a = 1").status == "answered"


def test_overhead_of_an_instant_answer_is_small(shared: Any) -> None:
    """Crossing to the event loop and back costs a few milliseconds at most."""
    times = []
    for _ in range(50):
        began = time.perf_counter()
        ask(shared, "a = 1")
        times.append(time.perf_counter() - began)
    assert sorted(times)[25] < 0.05


@pytest.mark.parametrize("until", [None, "^complete"])
def test_preparation_polls_until_the_index_is_ready(lab: Lab, until: str | None) -> None:
    """A preparing call is repeated while it says it is not ready, or until a pattern is met; then
    prose is read by a pattern per line."""
    session = open_bare(lab, prepare=({**POLL, "until": until},))
    assert items(session, ask(session, "b")) == ("src/b.py",)
    assert ask(session, "zzz").status == "abstained"
    assert session.start.indexing_seconds >= 0.06
    assert session.close().invalid == ()


@pytest.mark.parametrize(
    ("arguments", "values", "reason"),
    [
        (("--fail",), {}, "exit code 6"),
        (("--sleep",), {"startup_timeout_seconds": 0.5}, "was not ready after 0.5 s"),
        ((), {"tool": "search"}, "has no tool 'search', but poll"),
        ((), {"prepare": ({"tool": "refuse"},)}, "'refuse' failed: 'no such path'"),
        (
            *((), {"prepare": ({**POLL, "until": "^never", "timeout_seconds": 0.3},)}),
            "'poll' was not ready after 0.3 s; it last said",
        ),
        ((), {"argv": ("no-such-server",)}, "'no-such-server' cannot be started"),
    ],
)
def test_server_that_does_not_start_gives_infra(
    lab: Lab, arguments: tuple[str, ...], values: dict[str, Any], reason: str
) -> None:
    """A server that cannot be used is a failure of its answers, with the reason."""
    session = open_bare(lab, *arguments, **values)
    reply = ask(session)
    assert reply.status == "infra"
    assert reason in reply.reason
    assert session.close().invalid == ()


def test_server_that_fails_is_started_again_for_the_next_question(lab: Lab) -> None:
    """A crash, a flood and a time-out cost the question in flight; the group ends with it."""
    session = open_bare(
        lab, timeout_seconds=1, max_output_bytes=500_000, prepare=(POLL,), sandbox=False
    )
    reply = ask(session, "die")
    assert (reply.status, reply.reason) == ("infra", "the process ended with exit code 5")
    assert reply.stderr == "boom"
    assert ask(session, "b").status == "answered"
    assert ask(session, "flood").reason == "wrote more than 500000 bytes for one answer"
    assert ask(session, "b").status == "answered"
    reply = ask(session, "hang")
    assert reply.reason == "timed out after 1 s"
    assert is_gone(*(int(word) for word in reply.stderr.split()))
    assert ask(session, "stray").status == "abstained"
    end = session.close()
    assert end.restarts == 3
    assert "wrote 1 line to stdout that is no message" in end.warnings


@pytest.mark.network
def test_code_index_mcp_answers(lab: Lab) -> None:
    """A real server from the package registry: set the project, then search."""
    arm = McpArm(
        name="code-index",
        kind="mcp",
        package="pypi:code-index-mcp==2.17.1",
        argv=("code-index-mcp",),
        prepare=({"tool": "set_project_path", "arguments": {"path": "{corpus}"}},),
        tool="search_code_advanced",
        arguments={"pattern": "{terms_regex}", "regex": True},
        items="$.results[*].file",
        startup_timeout_seconds=300,
    )
    session = open_session(lab.context(arm))
    reply = ask(session, "b")
    assert reply.status == "answered", reply.reason
    assert items(session, reply) == ("src/b.py",)
    session.close()
